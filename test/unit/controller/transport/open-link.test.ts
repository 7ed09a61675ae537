import { Duplex } from "node:stream";
import { expect } from "chai";
import type { PeerLink } from "#controller/replica/replica-ports.ts";
import { openLink } from "#controller/transport/open-link.ts";

describe("a link to a peer", () => {
  it("counts bytes, not characters, in both directions", () => {
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const counted = { in: 0, out: 0 };
    let link: PeerLink | undefined;
    const message = { t: "refuse", code: "NOT_READY", message: "für Ännchen" } as const;
    const line = Buffer.from(`${JSON.stringify(message)}\n`);
    openLink({
      socket: new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() }),
      peer: "b",
      initiator: true,
      head: line,
      log,
      connected: (opened) => ((link = opened), { received: () => undefined, closed: () => undefined }),
      onBytes: (direction, bytes) => (counted[direction] += bytes),
      onContact: () => undefined,
    });
    link?.send(message);
    expect(counted).to.deep.equal({ in: line.length, out: line.length });
  });
});
