import { expect } from "chai";
import { openFollowerChannel } from "#engine/session/follower-channel.ts";
import { runOnNode, silentHost } from "#support/fake-session.ts";

describe("openFollowerChannel", () => {
  it("reports a silent login shell, and then closes the channel (F-12)", async () => {
    let reports = 0;
    const link = await openFollowerChannel({
      host: silentHost(),
      run: runOnNode,
      text: "",
      quiet: 1,
      onSilence: () => (reports += 1),
      patience: 20,
      sudoPassword: () => Promise.resolve(undefined),
      onLimit: () => undefined,
      onFrame: () => undefined,
    });
    expect([await link.closed, reports]).to.deep.equal(["", 1]);
  });
});
