import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import net from "node:net";
import { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import ssh2 from "ssh2";

/**
 * A module that scripts/warm-up.ts loads into kcore by `--import`: each TCP connection that kcore opens, to any address, reaches an SSH server
 * in kcore's own process, without a socket. The server accepts any public key, and runs commands by this machine's sh.
 */
const hostKey = new URL("./host-key", new URL(import.meta.url).searchParams.get("folder") ?? "");
const server = new ssh2.Server({ hostKeys: [readFileSync(fileURLToPath(hostKey))] }, (client) => {
  client.on("authentication", (context) =>
    context.method === "publickey" ? context.accept() : context.reject(["publickey"]),
  );
  client.on("error", () => undefined);
  client.on("session", (accept) => {
    accept().on("exec", (acceptExec, _reject, { command }) => {
      const channel = acceptExec();
      const child = spawn("/bin/sh", ["-c", command], { stdio: ["pipe", "pipe", "ignore"] });
      channel.on("error", () => undefined).pipe(child.stdin.on("error", () => undefined));
      child.stdout.on("data", (bytes: Buffer) => channel.write(bytes));
      child.on("close", (code) => {
        channel.exit(code ?? 255);
        channel.end();
      });
    });
  });
});

/** One end of a connection: data written to this end comes out of `other` in a later turn of the event loop, as from a socket. */
class End extends Duplex {
  other?: End;

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    setImmediate(() => {
      this.other?.push(bytes);
      done();
    });
  }

  override _final(done: () => void): void {
    this.other?.push(null);
    done();
  }

  setNoDelay(): this {
    return this;
  }
}

const connect = net.connect as (...given: unknown[]) => net.Socket;
const pretend = (...given: [{ readonly port?: number }]): net.Socket => {
  // A connection without a port goes to the socket of a run (run-socket.ts), which is real.
  if (given[0].port === undefined) return connect(...given);
  const [near, far] = [new End(), new End()];
  [near.other, far.other] = [far, near];
  server.injectSocket(far as unknown as net.Socket);
  setImmediate(() => near.emit("connect"));
  return near as unknown as net.Socket;
};
Object.assign(net, { connect: pretend });
