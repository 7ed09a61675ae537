import { expect } from "chai";
import type { Client } from "ssh2";
import { createEarlyExec, type Started } from "#engine/transport/early-exec.ts";

/** A client that records its messages, and confirms the channel as ssh2 does. */
function fakeClient({ server, channel = 0, inner = true }: { server: string; channel?: number; inner?: boolean }) {
  const sent: string[] = [];
  let destroyed = false;
  const protocol: Record<string, unknown> = {
    authPK: () => undefined,
    channelEOF: () => undefined,
    exec: (to: number, command: string) => sent.push(`exec ${to} ${command}`),
    channelData: (to: number, bytes: Buffer) => sent.push(`data ${to} ${bytes.length}`),
  };
  let confirm: () => void = () => undefined;
  const client = {
    ...(inner && { _protocol: protocol }),
    _remoteVer: server,
    destroy: () => (destroyed = true),
    exec(command: string, done: (error: undefined, stream: unknown) => void) {
      sent.push("open");
      confirm = () => {
        (protocol["exec"] as (to: number, command: string, reply: boolean) => void)(channel, command, true);
        done(undefined, { outgoing: { window: 2 * 1024 * 1024 } });
      };
    },
  };
  return {
    client: client as unknown as Client,
    sent,
    confirm: () => confirm(),
    isDestroyed: () => destroyed,
  };
}

describe("createEarlyExec", () => {
  const start = (fake: ReturnType<typeof fakeClient>, input?: string, earlyExec = createEarlyExec(fake.client)) => {
    let started: Started | undefined;
    earlyExec.exec("cmd", input, (_error, result) => (started = result));
    return { earlyExec, started: () => started };
  };

  it("waits for the channel's confirmation with other servers and other versions of ssh2", () => {
    for (const fake of [fakeClient({ server: "Cisco-1.25" }), fakeClient({ server: "OpenSSH_9.2", inner: false })]) {
      const { started } = start(fake, "input");
      expect(fake.sent).to.deep.equal(["open"]);
      fake.confirm();
      expect(Buffer.from(started()?.rest ?? "").toString()).to.equal("input");
    }
  });

  it("sends early on the first channel of a connection only", () => {
    const fake = fakeClient({ server: "OpenSSH_9.2" });
    const { earlyExec } = start(fake);
    start(fake, "input", earlyExec);
    expect(fake.sent.filter((what) => what.startsWith("data"))).to.deep.equal([]);
    const passedBy = fakeClient({ server: "OpenSSH_9.2" });
    const other = createEarlyExec(passedBy.client);
    other.otherChannel();
    start(passedBy, "input", other);
    expect(passedBy.sent).to.deep.equal(["open"]);
  });

  it("ends the connection when the server gives the channel another number", () => {
    const fake = fakeClient({ server: "OpenSSH_9.2", channel: 7 });
    start(fake, "input");
    fake.confirm();
    expect(fake.isDestroyed()).to.equal(true);
  });
});
