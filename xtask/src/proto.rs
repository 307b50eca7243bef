//! `cargo xtask proto`: Rust from `.proto` files, checked in so that a build needs neither this nor
//! `protoc`.
//!
//! Two trees of them: `proto/` is our own contract, for `wire`; `crates/directory/proto/` is the part
//! of etcd's that the directory calls.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use prost::Message;
use prost_types::{FileDescriptorSet, ServiceDescriptorProto};

/// Files of one contract, and where their Rust lives; both below the repository's root.
struct Tree {
    source: &'static str,
    out: &'static str,
    write: fn(FileDescriptorSet, &Path) -> Result<()>,
}

const TREES: [Tree; 2] = [
    Tree {
        source: "proto",
        out: "crates/wire/src/gen",
        write: write_served,
    },
    Tree {
        source: "crates/directory/proto",
        out: "crates/directory/src/etcd/gen",
        write: write_called,
    },
];

/// The file that reflection answers from.
const DESCRIPTORS: &str = "descriptors.bin";

/// The message that no generated code can read, since one number has two wire types in it.
const BY_HAND: &str = ".openshell.v1.ListSandboxesRequest";

/// Writes the generated files.
pub(crate) fn generate(root: &Path) -> Result<()> {
    for tree in &TREES {
        let fresh = Scratch::new("proto-generate")?;
        render(root, tree, fresh.path())?;
        let out = root.join(tree.out);
        fs::create_dir_all(&out)?;
        for name in names(&out)? {
            fs::remove_file(out.join(name))?;
        }
        for name in names(fresh.path())? {
            fs::copy(fresh.path().join(&name), out.join(&name))?;
        }
    }
    Ok(())
}

/// Fails, naming the files, when what is checked in is not what the `.proto` files yield.
pub(crate) fn check(root: &Path) -> Result<()> {
    TREES.iter().try_for_each(|tree| check_tree(root, tree))
}

fn check_tree(root: &Path, tree: &Tree) -> Result<()> {
    let fresh = Scratch::new("proto-check")?;
    render(root, tree, fresh.path())?;
    let out = root.join(tree.out);
    let mut names = [names(&out)?, names(fresh.path())?].concat();
    names.sort();
    names.dedup();
    let read = |path: PathBuf| fs::read(path).ok();
    names.retain(|name| read(out.join(name)) != read(fresh.path().join(name)));
    if names.is_empty() {
        return Ok(());
    }
    bail!(
        "stale in {}: {}; run `cargo xtask proto`",
        tree.out,
        names.join(", ")
    )
}

fn render(root: &Path, tree: &Tree, out: &Path) -> Result<()> {
    (tree.write)(compile(root, tree.source)?, out)?;
    format(root, out)
}

/// What `wire` reads and writes. Streaming RPCs are served by `transport`, below gRPC libraries, so
/// the service traits hold the unary methods alone. The descriptor set holds everything.
fn write_served(mut all: FileDescriptorSet, out: &Path) -> Result<()> {
    let mut code = all.clone();
    for service in code.file.iter_mut().flat_map(|file| &mut file.service) {
        keep_unary(service)?;
    }

    let mut config = tonic_prost_build::Config::new();
    config.bytes(["."]).btree_map(["."]);
    tonic_prost_build::configure()
        .build_client(false)
        .build_transport(false)
        .extern_path(BY_HAND, "crate::unary::ListSandboxesRequest")
        .emit_rerun_if_changed(false)
        .out_dir(out)
        .compile_fds_with_config(code, config)?;

    for file in &mut all.file {
        file.source_code_info = None;
    }
    fs::write(out.join(DESCRIPTORS), all.encode_to_vec())?;
    Ok(())
}

/// What the directory asks of etcd: clients alone, over whatever channel they are given.
fn write_called(all: FileDescriptorSet, out: &Path) -> Result<()> {
    tonic_prost_build::configure()
        .build_server(false)
        .build_transport(false)
        .emit_rerun_if_changed(false)
        .out_dir(out)
        .compile_fds_with_config(all, tonic_prost_build::Config::new())?;
    Ok(())
}

fn compile(root: &Path, source: &str) -> Result<FileDescriptorSet> {
    let proto = root.join(source);
    let mut files = Vec::new();
    collect(&proto, &mut files)?;
    files.sort();
    protox::compile(files, [&proto]).with_context(|| format!("{source}/ does not compile"))
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "proto")
        {
            files.push(path);
        }
    }
    Ok(())
}

/// Comments are attached to a method by its index, so only methods at the end may be left out.
fn keep_unary(service: &mut ServiceDescriptorProto) -> Result<()> {
    let streams =
        |m: &prost_types::MethodDescriptorProto| m.client_streaming() || m.server_streaming();
    let unary = service
        .method
        .iter()
        .take_while(|method| !streams(method))
        .count();
    ensure!(
        service.method[unary..].iter().all(streams),
        "in service {} a unary method follows a streaming one: list the unary ones first",
        service.name()
    );
    service.method.truncate(unary);
    Ok(())
}

fn format(root: &Path, out: &Path) -> Result<()> {
    let sources = names(out)?.into_iter().filter(|name| name.ends_with(".rs"));
    let status = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(root.join("rustfmt.toml"))
        .args(sources.map(|name| out.join(name)))
        .status()
        .context("rustfmt does not start")?;
    ensure!(status.success(), "rustfmt failed");
    Ok(())
}

fn names(dir: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// A directory that is gone when this is.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
