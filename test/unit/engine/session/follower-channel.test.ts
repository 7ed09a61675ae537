import { expect } from "chai";
import { openFollowerChannel } from "#engine/session/follower-channel.ts";
import type { Channel, Host } from "#engine/transport/host.ts";

describe("a link to a node", () => {
  it("F-12 says that a login shell says nothing, and gives it up in the end", async () => {
    let told = 0;
    const silence = Promise.withResolvers<void>();
    const channel: Channel = {
      stdout: (async function* (): AsyncGenerator<Buffer> {
        await silence.promise;
        yield* [];
      })(),
      write: () => Promise.resolve(),
      taken: () => 0,
      end: () => undefined,
      exit: Promise.resolve({}),
      close: silence.resolve,
      stderrTail: () => "",
    };
    const host = { name: "n1", exec: () => Promise.resolve(channel) } as unknown as Host;
    const link = await openFollowerChannel({
      host,
      run: {
        nonce: "f".repeat(32),
        stateDir: "/s",
        runId: "r",
        who: "w",
        node: "n1",
        dryRun: false,
        grants: [],
        login: "root",
      },
      text: "",
      quiet: 1,
      onSilence: () => (told += 1),
      patience: 20,
      sudoPassword: () => Promise.resolve(undefined),
      onLimit: () => undefined,
      onFrame: () => undefined,
    });
    expect([await link.closed, told]).to.deep.equal(["", 1]);
  });
});
