//! The launcher: reads what it shall become, and becomes it.

use std::convert::Infallible;
use std::ffi::CString;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;

use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal};
use rustix::process::{chdir, ioctl_tiocsctty, set_parent_process_death_signal, setsid};

use super::READY;
use super::failure::{Failure, Stage};
use super::request::Request;
use super::resolve::{DEFAULT_PATH, explain, resolve};

/// The exit code of a launcher that nobody has told anything.
const UNTOLD: i32 = 126;

/// Becomes the command; returns only if that is not possible.
pub(in crate::runner) fn run(mut socket: UnixStream) -> i32 {
    let Ok((request, files)) = listen(&mut socket) else {
        return UNTOLD;
    };
    let failure = match become_it(&mut socket, &request, files) {
        Ok(never) => match never {},
        Err(failure) => failure,
    };
    // Nobody listens if the supervisor is gone: then nobody needs to know.
    let _ = socket.write_all(&failure.encode());
    UNTOLD
}

fn listen(socket: &mut UnixStream) -> io::Result<(Request, Vec<OwnedFd>)> {
    let mut len = [0; 4];
    let (received, files) = crate::runner::socket::receive(&*socket, &mut len)?;
    socket.read_exact(&mut len[received..])?;
    let mut body = vec![0; u32::from_le_bytes(len) as usize];
    socket.read_exact(&mut body)?;
    Ok((Request::decode(&body)?, files))
}

fn become_it(
    socket: &mut UnixStream,
    request: &Request,
    files: Vec<OwnedFd>,
) -> Result<Infallible, Failure> {
    let mut files = files.into_iter();
    if request.dies_with_parent {
        let kill = Some(rustix::process::Signal::KILL);
        set_parent_process_death_signal(kill).map_err(Failure::at(Stage::Scope))?;
    }
    setsid().map_err(Failure::at(Stage::Setup))?;
    let setup = if request.terminal {
        take_terminal
    } else {
        take_pipes
    };
    setup(&mut files).map_err(Failure::at(Stage::Setup))?;
    drop(files);
    restore_signals().map_err(Failure::at(Stage::Setup))?;
    if let Some(workdir) = request.workdir.as_deref() {
        chdir(workdir).map_err(Failure::at(Stage::Workdir))?;
    }
    execute(socket, request)
}

fn take_terminal(files: &mut dyn Iterator<Item = OwnedFd>) -> io::Result<()> {
    let terminal = files.next().ok_or(io::ErrorKind::InvalidInput)?;
    ioctl_tiocsctty(&terminal)?;
    rustix::stdio::dup2_stdin(&terminal)?;
    rustix::stdio::dup2_stdout(&terminal)?;
    rustix::stdio::dup2_stderr(&terminal)?;
    Ok(())
}

fn take_pipes(files: &mut dyn Iterator<Item = OwnedFd>) -> io::Result<()> {
    let mut next = || {
        files
            .next()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
    };
    rustix::stdio::dup2_stdin(next()?)?;
    rustix::stdio::dup2_stdout(next()?)?;
    rustix::stdio::dup2_stderr(next()?)?;
    Ok(())
}

/// Undoes what the start of a Rust program has done to signals.
fn restore_signals() -> nix::Result<()> {
    nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    #[expect(
        unsafe_code,
        reason = "nothing but a handler could do harm, and this removes one"
    )]
    // SAFETY: the default action runs no code of ours.
    unsafe {
        nix::sys::signal::signal(Signal::SIGPIPE, SigHandler::SigDfl)?;
    }
    Ok(())
}

fn execute(socket: &mut UnixStream, request: &Request) -> Result<Infallible, Failure> {
    let path = request
        .environment
        .iter()
        .rev()
        .find_map(|it| it.strip_prefix("PATH="));
    let program = request.argv.first().map_or("", String::as_str);
    let file = resolve(program, path.unwrap_or(DEFAULT_PATH))?;
    let texts = |texts: &[String]| -> Result<Vec<CString>, Failure> {
        let texts = texts.iter().map(|text| CString::new(text.as_str()));
        texts
            .collect::<Result<_, _>>()
            .map_err(Failure::at(Stage::Execute))
    };
    let (argv, environment) = (texts(&request.argv)?, texts(&request.environment)?);
    let name = CString::new(file.as_os_str().as_bytes()).map_err(Failure::at(Stage::Execute))?;
    socket
        .write_all(&[READY])
        .map_err(Failure::at(Stage::Setup))?;
    match nix::unistd::execve(&name, &argv, &environment) {
        Ok(never) => match never {},
        Err(errno) => Err(explain(&file, errno)),
    }
}
