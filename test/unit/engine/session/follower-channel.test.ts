import { expect } from "chai";
import { openFollowerChannel } from "#engine/session/follower-channel.ts";
import { runOnNode, silentHost } from "#support/fake-session.ts";

describe("a link to a node", () => {
  it("F-12 says that a login shell says nothing, and gives it up in the end", async () => {
    let told = 0;
    const link = await openFollowerChannel({
      host: silentHost(),
      run: runOnNode,
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
