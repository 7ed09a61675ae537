import { expect } from "chai";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { memberKey, openFrom, ownMember, publicHalf, sealFor } from "#queue/member-key.ts";
import { Queue, type QueueMember } from "#queue/queue-settings.ts";
import { rejectionOf } from "#support/rejection.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("the members of a queue", () => {
  const at = folderOfEachTest("members");
  const member = async (name: string, roles: QueueMember["roles"] = ["coordinator", "worker"]) => {
    const key = await memberKey(at(name), { make: true });
    return { key, entry: { name, roles, ...(await publicHalf(key)) } };
  };

  it("have keys in a file of the user's own, which kcore makes once", async () => {
    const first = await publicHalf(await memberKey(at("a"), { make: true }));
    expect(await publicHalf(await memberKey(at("a"), { make: true }))).to.deep.equal(first);
    expect(statSync(at("a", "queue-key.json")).mode & 0o777).to.equal(0o600);
    writeFileSync(join(at("a"), "queue-key.json"), "{}");
    expect((await rejectionOf(memberKey(at("a"), { make: true }))).problems[0]?.code).to.equal("QUEUE_KEY");
    expect((await rejectionOf(memberKey(at("b"), { make: false }))).problems[0]?.hint).to.include("kcore queue key");
  });

  it("open what a named member signed for this use, and was encrypted to them", async () => {
    const [a, b, c] = [await member("a"), await member("b"), await member("c")];
    const sealed = await sealFor([b.entry], a.key, "run 1", { word: "x" });
    expect((await openFrom([a.entry], b.key, "run 1", sealed))?.body).to.deep.equal({ word: "x" });
    expect(await openFrom([a.entry], b.key, "run 2", sealed), "another use").to.equal(undefined);
    expect(await openFrom([c.entry], b.key, "run 1", sealed), "a signer who is not named").to.equal(undefined);
    expect(await openFrom([a.entry], c.key, "run 1", sealed), "not for this machine").to.equal(undefined);
    sealed[sealed.length - 1] = (sealed.at(-1) ?? 0) ^ 1;
    expect(await openFrom([a.entry], b.key, "run 1", sealed), "changed").to.equal(undefined);
  });

  it("do what their roles say", async () => {
    const { key, entry } = await member("a", ["worker"]);
    expect((await ownMember([entry], key, "worker")).name).to.equal("a");
    expect((await rejectionOf(ownMember([entry], key, "coordinator"))).problems[0]?.message).to.include("coordinator");
    expect((await rejectionOf(ownMember([], key, "worker"))).problems[0]?.hint).to.include("kcore queue key");
  });

  it("are refused in kcore.yaml with a name or key twice, or with a password in the address", async () => {
    const { entry } = await member("a");
    const url = "redis://kcore@queue:6379";
    expect(Queue.safeParse({ url, members: [entry] }).success).to.equal(true);
    expect(Queue.safeParse({ url, members: [entry, { ...entry, name: "b" }] }).success).to.equal(false);
    expect(Queue.safeParse({ url, members: [] }).success).to.equal(false);
    expect(Queue.safeParse({ url: "redis://kcore:secret@queue", members: [entry] }).success).to.equal(false);
    expect(Queue.safeParse({ url: "http://queue", members: [entry] }).success).to.equal(false);
  });
});
