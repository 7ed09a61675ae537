import { expect } from "chai";
import { openLink } from "#engine/session/link.ts";
import { silentHost } from "#support/fake-session.ts";

describe("a link to a node", () => {
  it("F-12 says that a login shell says nothing, and gives it up in the end", async () => {
    let told = 0;
    const link = await openLink({
      host: silentHost(),
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
      settled: () => Promise.resolve(),
      onFrame: () => undefined,
    });
    expect([await link.closed, told]).to.deep.equal(["", 1]);
  });
});
