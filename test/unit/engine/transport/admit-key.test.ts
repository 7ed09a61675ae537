import { Readable } from "node:stream";
import { expect } from "chai";
import { admitKey } from "#engine/transport/admit-key.ts";
import type { Host } from "#engine/transport/host.ts";
import { rejectionOf } from "#support/rejection.ts";

describe("admitKey", () => {
  it("fails where a node prints endlessly", async () => {
    let chunks = 0;
    const stdout = Readable.from(
      (function* () {
        for (;;) {
          chunks += 1;
          yield Buffer.alloc(1 << 12, "x");
        }
      })(),
    );
    const channel = { stdout, end: () => undefined, exit: new Promise(() => undefined), stderrTail: () => "" };
    const host = { name: "n1", exec: () => Promise.resolve(channel) } as unknown as Host;
    const { problems } = await rejectionOf(admitKey(host, "root", { type: "ssh-ed25519", key: "AAAA" }));
    expect(problems[0]).to.include({ code: "KEY_NOT_ADMITTED" });
    expect(chunks).to.be.lessThan(100);
  });
});
