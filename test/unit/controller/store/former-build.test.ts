import { cp } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { listConflicts } from "#controller/cluster/conflicts.ts";
import { watchNodeNames } from "#controller/cluster/node-names.ts";
import { readRecords } from "#controller/cluster/records.ts";
import { watchRejects } from "#controller/cluster/rejects.ts";
import { keyRules } from "#controller/cluster/registers.ts";
import { openDatabase } from "#controller/store/database.ts";
import { memoryReplica } from "#support/memory-replica.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const fixture = join(import.meta.dirname, "../../../fixtures/stores/before-siblings");
const id = "c530f094-c6e1-479f-b25c-501e6509bcf6";
const node = "1ecc18bb-0bcd-4f3b-be14-9f8f0651aef5";

/**
 * The folder of a controller of an older build, which wrote each pair of a conflict as a register of its own. The controller was one of two
 * when it was killed. The folder has 30 objects, one of them removed, one more object of each controller, and a rejected node.
 * The node's label “side” changed on both sides of a cut.
 */
describe("the store of a former build", () => {
  const dir = folderOfEachTest("former");

  it("F-29: is read whole: objects, deletions, a reject, and the conflict that stands, once", async () => {
    const folder = dir("db");
    await cp(fixture, folder, { recursive: true });
    const db = await openDatabase({ folder, rules: keyRules, onBroken: () => undefined });
    try {
      expect(db.notes).to.deep.equal([]);
      const replica = memoryReplica(() => Date.parse("2026-11-23T01:30:00Z"), id, db.data);
      const objects = [...replica.entries("object/")].filter(([, { text }]) => text !== null).map(([key]) => key);
      const volumes = Array.from({ length: 30 }, (_, at) => `object/Volume/v${at}`).filter(
        (key) => !key.endsWith("v3"),
      );
      expect(objects).to.have.members([...volumes, "object/Volume/a", "object/Volume/b"]);
      const records = readRecords(replica);
      expect(watchRejects(records).of(node)).to.have.length(1);
      const { conflicts } = listConflicts({ records, rejects: watchRejects(records) }, watchNodeNames(records));
      expect(
        conflicts.map(({ key, winner, loser, others }) => ({ key, won: winner?.value, lost: loser?.value, others })),
      ).to.deep.equal([
        { key: `node/${node}/label/side`, won: { value: "b" }, lost: { value: "a" }, others: undefined },
      ]);
    } finally {
      await db.close();
    }
  });
});
