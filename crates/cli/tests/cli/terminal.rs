//! `tidegate exec -t`

use std::time::Duration;

use tidegate_testkit::process::{Process, Signal, Terminal};
use tidegate_testkit::wait::{GENEROUS, until_async};

use crate::house::{House, SANDBOX, SOON, ended};

/// A command on a terminal at which somebody sits, and how that terminal was before.
struct Seat {
    pty: Terminal,
    process: Process,
    before: String,
}

impl Seat {
    /// Waits until the terminal is in raw mode.
    async fn take(house: &House, options: &[&str], command: &[&str]) -> Self {
        let (pty, stdin) = Terminal::open().unwrap();
        pty.resize(132, 43).unwrap();
        let before = pty.modes().unwrap();
        let args = [&["exec", "-it"], options, &[SANDBOX, "--"], command].concat();
        let mut command = house.command(&args);
        command.stdin(stdin).env("TERM", "vt100");
        let process = Process::spawn(command).unwrap();
        let is_raw = async || pty.modes().unwrap() != before;
        until_async(GENEROUS, is_raw).await.unwrap();
        Self {
            pty,
            process,
            before,
        }
    }

    /// Waits for the end, with the terminal as it was.
    async fn leave(&self, bound: Duration) -> i32 {
        let code = ended(&self.process, bound).await.code();
        assert_eq!(self.pty.modes().unwrap(), self.before, "{}", self.process);
        code.unwrap()
    }
}

#[tokio::test]
async fn size_and_term_are_those_here() {
    let house = House::new().await;
    let script = "stty size; echo $TERM; test -t 0 && test -t 1 && test -t 2; exit $?";
    let seat = Seat::take(&house, &[], &["sh", "-c", &format!("sleep 0.3; {script}")]).await;
    assert_eq!(seat.leave(SOON).await, 0, "{}", seat.process);
    assert_eq!(seat.process.stdout().to_string(), "43 132\r\nvt100\r\n");
}

#[tokio::test]
async fn keys_reach_the_program_and_so_does_a_new_size() {
    let house = House::new().await;
    let mut seat = Seat::take(&house, &[], &["sh"]).await;
    seat.pty
        .type_keys("stty -echo; echo one-$((1+1))\r")
        .unwrap();
    seat.process.line("one-2").await;
    seat.pty.resize(100, 40).unwrap();
    seat.process.signal(Signal::WINCH);
    seat.pty.type_keys("sleep 0.3; stty size\r").unwrap();
    seat.process.line("40 100").await;
    // Ctrl-C is a key: it interrupts what runs there, and nothing here.
    seat.pty.type_keys("sleep 300\r").unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    seat.pty.type_keys("\x03").unwrap();
    seat.pty.type_keys("echo still-$((1+1)); exit 5\r").unwrap();
    seat.process.line("still-2").await;
    assert_eq!(seat.leave(SOON).await, 5);
}

#[tokio::test]
async fn the_way_out_works_when_nothing_answers() {
    let house = House::new().await;
    let mut seat = Seat::take(&house, &[], &["sleep", "300"]).await;
    house.gateway.stop();
    seat.pty.type_keys("x\r~.").unwrap();
    assert_eq!(seat.leave(Duration::from_secs(2)).await, 125);
    house.gateway.resume();
}

#[tokio::test]
async fn the_escape_can_be_another() {
    let house = House::new().await;
    let mut seat = Seat::take(&house, &["--escape-char", "^]"], &["sleep", "300"]).await;
    seat.pty.type_keys("~.\r\x1d.").unwrap();
    assert_eq!(seat.leave(Duration::from_secs(2)).await, 125);
}

#[tokio::test]
async fn cli_05_the_terminal_is_restored_when_a_hop_is_lost() {
    let mut house = House::new().await;
    let seat = Seat::take(&house, &[], &["sh", "-c", "printf here; sleep 300"]).await;
    house.gateway.kill();
    assert_eq!(seat.leave(SOON).await, 125);
    let said = seat.process.stderr().to_string();
    assert!(
        said.starts_with("\nerror: "),
        "on a line of its own: {said:?}"
    );

    house.gateway_back().await;
    house.supervisor_back().await;
    let seat = Seat::take(&house, &[], &["sleep", "300"]).await;
    house.supervisor.kill();
    assert_eq!(seat.leave(SOON).await, 125);
}

#[tokio::test]
async fn cli_05_the_terminal_is_restored_by_signals() {
    let house = House::new().await;
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let seat = Seat::take(&house, &[], &["sleep", "300"]).await;
        seat.process.signal(signal);
        assert_eq!(seat.leave(SOON).await, code);
    }
}

#[tokio::test]
async fn the_end_of_input_on_a_terminal_is_its_character() {
    let house = House::new().await;
    let args = ["exec", "-it", SANDBOX, "--", "cat"];
    let process = house.run_with_stdin(&args);
    let mut stdin = process.take_stdin().unwrap();
    std::io::Write::write_all(&mut stdin, b"hi\n").unwrap();
    drop(stdin);
    assert!(ended(&process, SOON).await.success(), "{process}");
    assert!(process.stdout().to_string().contains("hi"), "{process}");
    assert!(
        process.stderr().to_string().contains("leave -t out"),
        "{process}"
    );
}
