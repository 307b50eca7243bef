"""A released openshell client against a Tidegate gateway: `released.py CHECK ENDPOINT TARGET [CA [CERT KEY]]`.

Works with both dialects of the service: 0.0.x names a sandbox by `sandbox_id`, 0.1.x by `sandbox`.
Prints one line a check that held, and fails with the first that did not.
"""

import hashlib
import os
import pathlib
import queue
import sys
import traceback

import grpc
import openshell
from openshell import SandboxClient
from openshell._proto import openshell_pb2 as pb

SANDBOX = "box"
OLD = "sandbox_id" in pb.TcpForwardInit.DESCRIPTOR.fields_by_name


def named(name):
    return {"sandbox_id" if OLD else "sandbox": name}


def connect(endpoint, files):
    if not files:
        return SandboxClient(endpoint, timeout=20)
    paths = dict(zip(("ca_path", "cert_path", "key_path"), map(pathlib.Path, files)))
    return SandboxClient(endpoint, tls=openshell.TlsConfig(**paths), timeout=20)


def expect(wanted, seen):
    if wanted != seen:
        raise AssertionError(f"wanted {wanted!r}, saw {seen!r}")


def fails(code, call):
    """Runs a call that must fail with this code, and returns what it says."""
    try:
        call()
    except Exception as error:
        error = error if isinstance(error, grpc.RpcError) else error.__cause__ or error
        seen = error.code() if callable(error.code) else error.code
        expect(code, seen)
        return str(error)
    raise AssertionError(f"did not fail with {code}")


def ask(client, _target):
    health = client.health()
    expect(1, health.status)
    expect(True, bool(health.version))
    sandbox = client.get(SANDBOX, workspace="default")
    expect((SANDBOX, 2), (sandbox.name, sandbox.phase))
    every = client.list if OLD else client.list_all
    expect([SANDBOX], [ref.name for ref in every(workspace="default")])
    expect([sandbox.id], client.list_ids_for_all_workspaces())
    said = fails(grpc.StatusCode.NOT_FOUND, lambda: client.get("nobody", workspace="default"))
    expect(True, "nobody" in said)
    said = fails(grpc.StatusCode.UNIMPLEMENTED, lambda: client.create(workspace="default"))
    expect(True, "Tidegate" in said)


def session(client, sandbox=SANDBOX):
    return client._stub.CreateSshSession(
        pb.CreateSshSessionRequest(**named(sandbox)), timeout=20
    )


def forward(client, target, token, sandbox=SANDBOX, timeout=30):
    """Opens a stream; returns the call and a function that sends bytes, or FIN for None."""
    host, port = target.rsplit(":", 1)
    frames = queue.Queue()
    frames.put(
        pb.TcpForwardFrame(
            init=pb.TcpForwardInit(
                tcp=pb.TcpRelayTarget(host=host, port=int(port)),
                authorization_token=token,
                **named(sandbox),
            )
        )
    )

    def send(data):
        frames.put(None if data is None else pb.TcpForwardFrame(data=data))

    return client._stub.ForwardTcp(iter(frames.get, None), timeout=timeout), send


def received(call):
    return b"".join(frame.data for frame in call)


def tickets(client, target):
    ticket = session(client)
    expect(True, len(ticket.token) > 20)
    expect(int(client._endpoint.rsplit(":", 1)[1]), ticket.gateway_port)
    expiry = ticket.expires_at_ms / 1000 if OLD else ticket.expiration_time.seconds
    expect(True, expiry > 1_700_000_000)
    revoked = client._stub.RevokeSshSession(pb.RevokeSshSessionRequest(token=ticket.token))
    expect(True, revoked.revoked if OLD else revoked.outcome == 1)

    def use(token, sandbox=SANDBOX):
        call, send = forward(client, target, token, sandbox)
        send(None)
        received(call)

    fails(grpc.StatusCode.UNAUTHENTICATED, lambda: use(ticket.token))
    fails(grpc.StatusCode.NOT_FOUND, lambda: session(client, "nobody"))
    fails(grpc.StatusCode.NOT_FOUND, lambda: use("", "nobody"))


def echo(client, target):
    """3 MiB there and back, then FIN, answered by FIN: the end of the call with OK."""
    call, send = forward(client, target, session(client).token)
    content = os.urandom(3 << 20)
    for start in range(0, len(content), 1 << 16):
        send(content[start : start + (1 << 16)])
    send(None)
    back = received(call)
    expect(hashlib.sha256(content).digest(), hashlib.sha256(back).digest())
    expect(grpc.StatusCode.OK, call.code())


def half_close(client, target):
    """The target answers only after it has seen FIN."""
    call, send = forward(client, target, session(client).token)
    send(b"x" * 100_000)
    send(None)
    expect(b"OK 100000\n", received(call))
    expect(grpc.StatusCode.OK, call.code())


def target_first(client, target):
    """The target ends first. This client knows no half-close: it is told by the end of the call."""
    call, _ = forward(client, target, session(client).token)
    expect(1 << 20, len(received(call)))
    expect(grpc.StatusCode.OK, call.code())


def refused(client, target):
    call, _ = forward(client, target, session(client).token)
    said = fails(grpc.StatusCode.UNAVAILABLE, lambda: received(call))
    expect(True, "refused" in said)
    details = dict(call.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    expect(True, b"TARGET_REFUSED" in details and b"google.rpc.ErrorInfo" in details)


def refused_upload(client, target):
    """The status comes while the upload is on its way, by the target's host or by the gateway."""
    for sandbox, code in [
        (SANDBOX, grpc.StatusCode.UNAVAILABLE),
        ("nobody", grpc.StatusCode.NOT_FOUND),
    ]:
        for _ in range(10):
            call, send = forward(client, target, "", sandbox)
            for _ in range(64):
                send(b"x" * (1 << 16))
            fails(code, lambda: received(call))
            details = dict(call.trailing_metadata() or ())
            expect(True, b"google.rpc.ErrorInfo" in details["grpc-status-details-bin"])


def reset(client, target):
    """The target sends 1,000 bytes and resets once they have arrived: the bytes, then an error."""
    call, send = forward(client, target, session(client).token)
    got = 0
    while got < 1000:
        got += len(next(call).data)
    expect(1000, got)
    send(b"got it")
    fails(grpc.StatusCode.UNAVAILABLE, lambda: next(call))


def cancel(client, target):
    call, send = forward(client, target, session(client).token)
    send(b"hello")
    expect(b"hello", next(call).data)
    call.cancel()
    fails(grpc.StatusCode.CANCELLED, lambda: received(call))


def deadline(client, target):
    call, send = forward(client, target, session(client).token, timeout=1)
    send(b"hello")
    expect(b"hello", next(call).data)
    fails(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: received(call))


def execute(client, argv, **options):
    if not OLD:
        options["workspace"] = "default"
    return client.exec(SANDBOX, argv, **options)


def commands(client, _target):
    """The client's own exec: both outputs, stdin, variables, the code, a signal, a timeout."""
    result = execute(client, ["sh", "-c", "printf out; printf err >&2; exit 3"])
    expect((3, "out", "err"), (result.exit_code, result.stdout, result.stderr))
    content = os.urandom(200_000).hex()
    result = execute(client, ["cat"], stdin=content.encode())
    expect((0, True), (result.exit_code, result.stdout == content))
    result = execute(client, ["cat"])
    expect((0, ""), (result.exit_code, result.stdout))
    result = execute(client, ["sh", "-c", "echo $WORD; pwd"], env={"WORD": "a b"}, workdir="/tmp")
    expect("a b\n/tmp\n", result.stdout)
    expect("$(id); *", execute(client, ["printf", "%s", "$(id); *"]).stdout)
    expect(137, execute(client, ["sh", "-c", "kill -9 $$"]).exit_code)
    expect(124, execute(client, ["sleep", "60"], timeout_seconds=1).exit_code)
    expect(1_288_902, len(execute(client, ["seq", "1", "200001"]).stdout))
    said = fails(grpc.StatusCode.FAILED_PRECONDITION, lambda: execute(client, ["no-such-program"]))
    expect(True, "no-such-program" in said)
    expect(0, execute(client, ["sh", "-c", "sleep 2 & exit 0"]).exit_code)


def cancelled_command(client, _target):
    request = pb.ExecSandboxRequest(command=["sh", "-c", "echo begun; sleep 60"], **named(SANDBOX))
    call = client._stub.ExecSandbox(request, timeout=20)
    expect(b"begun\n", next(call).stdout.data)
    call.cancel()
    fails(grpc.StatusCode.CANCELLED, lambda: list(call))


CHECKS = [
    commands,
    cancelled_command,
    ask,
    tickets,
    echo,
    half_close,
    target_first,
    refused,
    refused_upload,
    reset,
    cancel,
    deadline,
]


def main(check, endpoint, target, *files):
    with connect(endpoint, files) as client:
        {check.__name__: check for check in CHECKS}[check](client, target)
    print("ok", flush=True)


try:
    main(*sys.argv[1:])
except BaseException:
    traceback.print_exc()
    os._exit(1)
# grpcio's threads may hold a lock of its own when the interpreter stops them, and wants it again to
# clear up: one run in some hundreds would wait for ever after all is done (seen with 1.85.4).
os._exit(0)
