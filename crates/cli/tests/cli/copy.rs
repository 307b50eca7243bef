//! `tidegate cp`

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;
use tidegate_testkit::process::Process;
use tidegate_testkit::wait::{GENEROUS, until_async};

use crate::house::{House, SANDBOX, SOON, ended};

/// Files here, and a gateway whose sandbox is the same machine.
struct Desk {
    house: House,
    home: TempDir,
}

impl Desk {
    async fn new() -> Self {
        let house = House::new().await;
        let home = tempfile::tempdir().unwrap();
        Self { house, home }
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    /// The same path in the sandbox.
    fn there(&self, name: &str) -> String {
        format!("{SANDBOX}:{}", self.path(name))
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().mode() & 0o7777
    }

    async fn copy(&self, from: &str, to: &str) -> (Option<i32>, String) {
        let process = self.house.run(&["cp", from, to]);
        let code = ended(&process, SOON).await.code();
        assert_eq!(process.stdout().to_string(), "");
        (code, process.stderr().to_string())
    }

    /// What was begun and is not where it belongs.
    fn begun(&self) -> Option<String> {
        let mut names = self.names().into_iter();
        names.find(|name| name.starts_with(".tidegate-"))
    }

    fn is_tidy(&self) {
        assert_eq!(self.begun(), None);
    }

    /// The names of all that there is.
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect(self.home.path(), &mut names);
        names
    }
}

fn collect(folder: &Path, names: &mut Vec<String>) {
    for child in fs::read_dir(folder).unwrap().flatten() {
        names.push(child.file_name().display().to_string());
        if child.file_type().unwrap().is_dir() {
            collect(&child.path(), names);
        }
    }
}

#[tokio::test]
async fn folders_go_there_and_come_back_as_they_are() {
    let desk = Desk::new().await;
    desk.write("src/a", "one", 0o640);
    desk.write("src/sub/run me.sh", "two", 0o755);
    desk.write("src/sub/.hidden", "", 0o600);
    fs::set_permissions(desk.path("src/sub"), fs::Permissions::from_mode(0o750)).unwrap();
    for (from, to) in [
        (desk.path("src"), desk.there("up")),
        (desk.there("up"), desk.path("down")),
    ] {
        assert_eq!(desk.copy(&from, &to).await, (Some(0), String::new()));
    }
    for folder in ["up", "down"] {
        let name = |name: &str| format!("{folder}/{name}");
        assert_eq!(desk.read(&name("a")), "one");
        assert_eq!(desk.read(&name("sub/run me.sh")), "two");
        assert_eq!(desk.mode(&name("a")), 0o640);
        assert_eq!(desk.mode(&name("sub/run me.sh")), 0o755);
        assert_eq!(desk.mode(&name("sub/.hidden")), 0o600);
        assert_eq!(desk.mode(&name("sub")), 0o750);
    }
    desk.is_tidy();
}

#[tokio::test]
async fn a_folder_that_is_there_receives_the_copy() {
    let desk = Desk::new().await;
    desk.write("file", "new", 0o644);
    desk.write("there/file", "old", 0o600);
    desk.write("there/other", "stays", 0o600);
    desk.write("here/tree/x", "old", 0o600);
    desk.write("here/tree/y", "stays", 0o600);
    desk.write("tree/x", "new", 0o644);
    for (from, to) in [
        (desk.path("file"), desk.there("there")),
        (desk.path("file"), desk.there("renamed")),
        (desk.path("tree"), desk.there("there/")),
        (desk.there("tree"), desk.path("here")),
        (desk.path("tree/."), desk.there("there")),
        (desk.there("file"), desk.path("back")),
    ] {
        assert_eq!(
            desk.copy(&from, &to).await,
            (Some(0), String::new()),
            "{from} {to}"
        );
    }
    let expected = [
        ("there/file", "new"),
        ("there/other", "stays"),
        ("renamed", "new"),
        ("there/tree/x", "new"),
        ("here/tree/x", "new"),
        ("here/tree/y", "stays"),
        ("there/x", "new"),
        ("back", "new"),
    ];
    for (name, text) in expected {
        assert_eq!(desk.read(name), text, "{name}");
    }
    desk.is_tidy();
}

#[tokio::test]
async fn what_cannot_be_copied_is_told_and_leaves_nothing() {
    let desk = Desk::new().await;
    desk.write("file", "x", 0o644);
    for (from, to, word) in [
        (desk.there("none"), desk.path("to"), "no such file"),
        (desk.path("none"), desk.there("to"), "No such file"),
        (desk.path("file"), desk.there("none/to"), "none"),
        (desk.path("file"), desk.path("to"), "SANDBOX:PATH"),
        (desk.path("file"), desk.there("none/"), "no such folder"),
    ] {
        let (code, said) = desk.copy(&from, &to).await;
        assert_eq!(code, Some(1), "{from} {to}");
        assert!(said.starts_with("error: ") && said.contains(word), "{said}");
        assert!(!Path::new(&desk.path("to")).exists());
    }
    desk.is_tidy();
}

#[tokio::test]
async fn links_of_a_sandbox_are_left_out_by_name() {
    let desk = Desk::new().await;
    desk.write("src/a", "one", 0o644);
    symlink("/etc", desk.path("src/way")).unwrap();
    let (code, said) = desk.copy(&desk.there("src"), &desk.path("down")).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("left out: way (a symbolic link)"), "{said}");
    assert_eq!(desk.read("down/a"), "one");
    assert!(fs::symlink_metadata(desk.path("down/way")).is_err());
    // The one that was named is what it leads to.
    symlink(desk.path("src/a"), desk.path("named")).unwrap();
    let (code, said) = desk.copy(&desk.there("named"), &desk.path("copy")).await;
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(desk.read("copy"), "one");
}

/// A copy that has begun to arrive at `folder`.
async fn begun(desk: &Desk, from: &str, to: &str) -> Process {
    let process = desk.house.run(&["cp", from, to]);
    let arrives = async || desk.names().iter().any(|name| name == "new");
    until_async(GENEROUS, arrives).await.unwrap();
    process
}

#[tokio::test]
async fn a_copy_that_is_interrupted_leaves_no_file() {
    let mut desk = Desk::new().await;
    let big = fs::File::create(desk.path("big")).unwrap();
    big.set_len(64 << 30).unwrap();
    for (from, to) in [
        (desk.there("big"), desk.path("to")),
        (desk.path("big"), desk.there("to")),
    ] {
        let process = begun(&desk, &from, &to).await;
        process.interrupt();
        assert_eq!(ended(&process, SOON).await.code(), Some(130), "{process}");
        assert!(!Path::new(&desk.path("to")).exists());
        // In the sandbox it takes as long as TERM does.
        let tidy = async || desk.begun().is_none();
        until_async(GENEROUS, tidy).await.unwrap();
    }
    let process = begun(&desk, &desk.there("big"), &desk.path("to")).await;
    desk.house.supervisor.kill();
    assert_eq!(ended(&process, SOON).await.code(), Some(1), "{process}");
    assert!(
        process.stderr().to_string().contains("SUPERVISOR_LOST"),
        "{process}"
    );
    assert!(!Path::new(&desk.path("to")).exists());
    desk.is_tidy();
    desk.house.supervisor_back().await;
}
