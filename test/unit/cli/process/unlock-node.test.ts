import { expect } from "chai";
import { unlocker } from "#cli/process/unlock-node.ts";
import type { UnlockRequest } from "#engine/orchestrate/run-types.ts";
import { HostUnreachable } from "#engine/transport/host-problems.ts";
import { KcoreError } from "#errors/problem.ts";
import { problemsOf } from "#support/steps.ts";

const asked = (id = "i1", vars: object = { encryptOs: true }): UnlockRequest =>
  ({ node: { name: id, id, vars } }) as unknown as UnlockRequest;

// Sending the key is tried in test/integration/cli/unlock.test.ts, and in a run in test/lab/vm-encrypted-root.test.ts.
describe("a run that waits for a node", () => {
  it("has nothing to unlock on one whose root kcore did not encrypt", async () => {
    const unlock = (): never => {
      throw new Error("asked");
    };
    expect(await unlocker("me", { unlock })(asked("i1", {}))).to.equal(false);
  });

  it("leaves one that was unlocked alone while its initrd still answers, and asks again when no key was wanted", async () => {
    let time = 1_000_000;
    const ends = ["unasked", "open", "lost", "open", undefined] as const;
    let tries = 0;
    const ask = unlocker("me", { now: () => time, unlock: () => Promise.resolve(ends[tries++]) });
    expect(await ask(asked())).to.equal(false);
    expect(await ask(asked())).to.equal(true);
    time += 59_999;
    expect([await ask(asked()), tries]).to.deep.equal([false, 2]);
    // Another node does not count.
    expect([await ask(asked("i2")), await ask(asked("i2")), tries]).to.deep.equal([false, false, 3]);
    time += 1;
    expect([await ask(asked()), tries]).to.deep.equal([true, 4]);
    expect([await ask(asked("i3")), tries]).to.deep.equal([false, 5]);
  });

  it("waits on when it cannot be reached, and ends when nobody can open it", async () => {
    const codeOf = async (error: Error): Promise<string | undefined> =>
      (await problemsOf(() => unlocker("me", { unlock: () => Promise.reject(error) })(asked())))[0]?.code;
    expect(await codeOf(new HostUnreachable("refused", { message: "" }))).to.equal("HOST_UNREACHABLE");
    expect(await codeOf(new KcoreError({ code: "PKI_PASSPHRASE_WRONG", message: "" }))).to.equal("UNLOCK_FAILED");
  });
});
