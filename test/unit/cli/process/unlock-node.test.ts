import { expect } from "chai";
import { unlocker } from "#cli/process/unlock-node.ts";
import type { UnlockRequest } from "#engine/orchestrate/run-types.ts";
import { HostUnreachable } from "#engine/transport/host-problems.ts";
import { KcoreError } from "#errors/problem.ts";
import { problemsOf } from "#support/steps.ts";

const requestFor = (id = "i1", vars: object = { encryptOs: true }): UnlockRequest =>
  ({ node: { name: id, id, vars } }) as unknown as UnlockRequest;

// test/integration/cli/unlock.test.ts and test/lab/vm-encrypted-root.test.ts send keys.
describe("a run that waits for a node with an encrypted root", () => {
  it("does not unlock a node whose root kcore did not encrypt", async () => {
    const unlock = (): never => {
      throw new Error("asked");
    };
    expect(await unlocker("me", { unlock })(requestFor("i1", {}))).to.equal(false);
  });

  it("does not unlock a node again within a minute of success, and retries when the node wanted no key", async () => {
    let time = 1_000_000;
    const ends = ["unasked", "open", "lost", "open", undefined] as const;
    let tries = 0;
    const ask = unlocker("me", { now: () => time, unlock: () => Promise.resolve(ends[tries++]) });
    expect(await ask(requestFor())).to.equal(false);
    expect(await ask(requestFor())).to.equal(true);
    time += 59_999;
    expect([await ask(requestFor()), tries]).to.deep.equal([false, 2]);
    // Each node has a minute of its own.
    expect([await ask(requestFor("i2")), await ask(requestFor("i2")), tries]).to.deep.equal([false, false, 3]);
    time += 1;
    expect([await ask(requestFor()), tries]).to.deep.equal([true, 4]);
    expect([await ask(requestFor("i3")), tries]).to.deep.equal([false, 5]);
  });

  it("continues to wait if the initrd is unreachable, and fails if the key cannot be read", async () => {
    const codeOf = async (error: Error): Promise<string | undefined> =>
      (await problemsOf(() => unlocker("me", { unlock: () => Promise.reject(error) })(requestFor())))[0]?.code;
    expect(await codeOf(new HostUnreachable("refused", { message: "" }))).to.equal("HOST_UNREACHABLE");
    expect(await codeOf(new KcoreError({ code: "PKI_PASSPHRASE_WRONG", message: "" }))).to.equal("UNLOCK_FAILED");
  });
});
