import { expect } from "chai";
import { Alarms } from "#controller/replica/alarms.ts";
import { ClusterState } from "#controller/replica/cluster-state.ts";
import { CommitQueue } from "#controller/replica/commit-queue.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import { PageReader } from "#crdt/page.ts";
import { oneRegister } from "#support/one-register.ts";
import { allPromises } from "../../../sim/scheduler.ts";

/** A queue that merges one register in a turn; the test ends each turn, and each append. */
function queued() {
  const data = new ClusterState({ mergeKindOf: () => "lww" });
  const turns: (() => void)[] = [];
  const appends: PromiseWithResolvers<void>[] = [];
  const alarms = new Alarms(
    () => 0,
    () => undefined,
  );
  const append = (): Promise<void> => {
    appends.push(Promise.withResolvers<void>());
    return appends.at(-1)?.promise ?? Promise.reject(new Error("no append"));
  };
  const nextTurn = (): Promise<void> => new Promise((resolve) => turns.push(resolve));
  const commits = new CommitQueue({ db: { data, append }, alarms, slice: 1, nextTurn });
  return { data, turns, appends, alarms, commits };
}

describe("the queue of commits", () => {
  it("does work between records, in the order of the calls, and never within a merge", async () => {
    const { data, turns, appends, commits } = queued();
    const done: string[] = [];
    const merge: JournalRecord = { ...oneRegister(2, "merged"), upto: [["c1#old", 2]] };
    const registers = [oneRegister(1, "first"), merge].flatMap(({ page }) => new PageReader().read(page));
    const ends = [
      commits.commit([merge], registers).then(() => done.push("merge")),
      commits.commit([oneRegister(3)]).then(() => done.push("behind")),
    ];
    for (const { resolve } of appends) resolve();
    await allPromises();
    const work = commits.inTurn(() => done.push(`work with ${data.map.size}`));
    await allPromises();
    expect([data.isMerging, done, commits.inFlight]).to.deep.equal([true, [], 2]);
    turns.shift()?.();
    await Promise.all([...ends, work]);
    // `work` was called last, so it has seen all three registers.
    expect(done).to.have.members(["merge", "behind", "work with 3"]);
    expect([data.isMerging, commits.inFlight]).to.deep.equal([false, 0]);
  });

  it("lets records that the journal refuses count nowhere, says so, and takes the next", async () => {
    const { data, appends, alarms, commits } = queued();
    const refused = commits.commit([oneRegister(1)]);
    expect(commits.accepted.get("c1#old")).to.equal(1);
    appends[0]?.reject(new Error("ENOSPC"));
    expect(await refused.then(() => "written", ({ code }: { code: string }) => code)).to.equal("FULL");
    expect([commits.accepted.size, commits.inFlight, data.map.size]).to.deep.equal([0, 0, 0]);
    expect(alarms.has("STORAGE_FULL", "journal")).to.equal(true);
    const taken = commits.commit([oneRegister(1)]);
    appends[1]?.resolve();
    await taken;
    expect([data.map.size, alarms.all()]).to.deep.equal([1, []]);
  });
});
