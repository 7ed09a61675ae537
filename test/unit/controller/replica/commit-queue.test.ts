import { expect } from "chai";
import { Alarms } from "#controller/replica/alarms.ts";
import { ClusterState } from "#controller/replica/cluster-state.ts";
import { CommitQueue } from "#controller/replica/commit-queue.ts";
import { PageReader } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { oneRegister } from "#support/one-register.ts";
import { allPromises } from "../../../sim/scheduler.ts";

type Apply = ReturnType<typeof oneRegister>;
const registersOf = ({ page }: Apply): readonly Register[] => new PageReader().read(page);

/** A queue that merges one register a turn of the event loop; the test ends each turn and each append. */
function openQueue() {
  const data = new ClusterState({ mergeKindOf: () => "lww" });
  const turns: (() => void)[] = [];
  const appends: PromiseWithResolvers<void>[] = [];
  const alarms = new Alarms(
    () => 0,
    () => undefined,
  );
  const append = (): Promise<void> => {
    const appended = Promise.withResolvers<void>();
    appends.push(appended);
    return appended.promise;
  };
  const nextTurn = (): Promise<void> => new Promise((resolve) => turns.push(resolve));
  const commits = new CommitQueue({ db: { data, append }, alarms, slice: 1, nextTurn });
  const write = (record: Apply): Promise<void> => commits.commit([record], registersOf(record));
  return { data, turns, appends, alarms, commits, write };
}

describe("the queue of commits", () => {
  it("does work in the order of the calls, between records, never within a merge", async () => {
    const { data, turns, appends, commits, write } = openQueue();
    const done: string[] = [];
    const last = oneRegister(2);
    const registers = [...registersOf(oneRegister(1)), ...registersOf(last)];
    const ends = [
      commits.commit([last], registers).then(() => done.push("merge")),
      write(oneRegister(3)).then(() => done.push("write")),
    ];
    for (const { resolve } of appends) resolve();
    await allPromises();
    const work = commits.inTurn(() => done.push(`work with ${data.map.size}`));
    await allPromises();
    expect([data.isMerging, done, commits.inFlight]).to.deep.equal([true, [], 2]);
    turns.shift()?.();
    await Promise.all([...ends, work]);
    // `work` was called last, so it has seen all three registers.
    expect(done).to.have.members(["merge", "write", "work with 3"]);
    expect([data.isMerging, commits.inFlight]).to.deep.equal([false, 0]);
  });

  it("does not count records that the journal refuses, raises an alarm, and accepts the next records", async () => {
    const { data, appends, alarms, commits, write } = openQueue();
    const refused = write(oneRegister(1));
    expect(commits.accepted.get("c1#old")).to.equal(1);
    appends[0]?.reject(new Error("ENOSPC"));
    expect(
      await refused.then(
        () => "written",
        ({ code }: { code: string }) => code,
      ),
    ).to.equal("FULL");
    expect([commits.accepted.size, commits.inFlight, data.map.size]).to.deep.equal([0, 0, 0]);
    expect(alarms.has("STORAGE_FULL", "journal")).to.equal(true);
    const taken = write(oneRegister(1));
    appends[1]?.resolve();
    await taken;
    expect([data.map.size, alarms.all()]).to.deep.equal([1, []]);
  });
});
