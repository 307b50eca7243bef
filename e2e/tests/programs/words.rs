//! Small protocols: who speaks first, and who falls silent first.

use std::process::Command;

use tidegate_e2e::tools::{run, shell};
use tidegate_testkit::{process::Process, record::Ended, target::Target};

use crate::plain;

#[tokio::test]
async fn nc_finishes_and_still_gets_the_answer() {
    let (world, target) = (plain().await, Target::answer_after_end().unwrap());
    let forward = world.forward(&target).await;
    let script = "head -c $2 /dev/zero | nc.openbsd -N 127.0.0.1 $1";
    let arguments = [forward.address().port().to_string(), "1000000".to_owned()];
    assert_eq!(shell(script, &arguments).await, "OK 1000000\n");
    let seen = target.next().await.until_closed().await;
    assert_eq!(
        (seen.bytes_read, seen.read_end),
        (1_000_000, Some(Ended::Eof))
    );
    world.settle().await;
}

/// A mail server that keeps what it is told, and greets whoever connects.
const MAIL_SERVER: &str = r#"
import socketserver, sys
class Mail(socketserver.StreamRequestHandler):
    def say(self, line): self.wfile.write(line.encode() + b"\r\n")
    def handle(self):
        self.say("220 mail.test ESMTP")
        for line in self.rfile:
            verb = line.split()[0].upper()
            if verb == b"DATA":
                self.say("354 go on")
                lines = iter(self.rfile.readline, b".\r\n")
                print("got", sum(len(line) for line in lines), "bytes", flush=True)
                self.say("250 kept")
            elif verb == b"QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 fine")
server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mail)
print("listening on %s:%d" % server.server_address, flush=True)
server.serve_forever()
"#;

/// A client that says nothing until it has been greeted.
const MAIL_CLIENT: &str = r#"
import smtplib, sys
mail = smtplib.SMTP("127.0.0.1", int(sys.argv[1]), timeout=20)
mail.sendmail("a@mail.test", ["b@mail.test"], "Subject: x\r\n\r\n" + "line of text\r\n" * 20000)
print(mail.quit()[0])
"#;

#[tokio::test]
async fn a_mail_server_speaks_first() {
    let world = plain().await;
    let server = Process::run("python3", ["-c", MAIL_SERVER]).unwrap();
    let address = server.address_after("listening on").await;
    let forward = world.forward_to(&address.to_string()).await;
    let mut client = Command::new("python3");
    client.args(["-c", MAIL_CLIENT, &forward.address().port().to_string()]);
    assert_eq!(run(client).await, "221\n");
    server.line("got 280014 bytes").await;
    world.settle().await;
}
