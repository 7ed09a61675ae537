import { expect } from "chai";
import { readRecords } from "#controller/cluster/records.ts";
import { keys, kinds } from "#controller/cluster/registers.ts";
import { Refused } from "#controller/cluster/refused.ts";
import type { Replica } from "#controller/replica/create-replica.ts";
import { memoryReplica } from "#support/memory-replica.ts";

describe("the protocol that all controllers have in common", () => {
  let replica: Replica;
  const register = (id: string): Promise<unknown> =>
    replica.write([{ key: keys.controller(id).auth, value: { spki: "00", dc: "DC1" } }]);
  const tell = (id: string, value: Readonly<Record<string, string | number>>): Promise<unknown> =>
    replica.write([{ key: keys.controller(id).version, value: { version: "1", ...value } }]);
  /** The result of writing a register of a kind that came with this protocol, beside an old kind. */
  const verdict = async (since: number): Promise<string> => {
    Object.assign(kinds.config, { since });
    const changes = [keys.object("Old", "one"), keys.config("quota")].map((key) => ({ key, value: {} }));
    try {
      await readRecords(replica).write(changes);
      return "written";
    } catch (error) {
      return error instanceof Refused ? `${error.status} ${error.code} ${error.message}` : String(error);
    }
  };

  beforeEach(async () => {
    replica = memoryReplica(() => 1_000_000);
    await register("c1");
    await tell("c1", { protocol: 2 });
  });
  afterEach(() => {
    Object.assign(kinds.config, { since: 1 });
    replica.stop();
  });

  it("F-29: lets a new kind of register be written when every controller knows it", async () => {
    expect(await verdict(2)).to.equal("written");
    await register("c2");
    await tell("c2", { protocol: 3 });
    expect(await verdict(2)).to.equal("written");
    expect(await verdict(3)).to.match(/^409 CLUSTER_MIXED cluster\/config\/quota needs .* 3 .* c1 speaks 2$/);
  });

  it("F-29: holds it back for one of the version before, and one that never spoke", async () => {
    await register("c2");
    expect(await verdict(2)).to.match(/^409 CLUSTER_MIXED .* c2 speaks 1$/);
    await tell("c2", {});
    expect(await verdict(2)).to.match(/^409 CLUSTER_MIXED .* c2 speaks 1$/);
    expect(await verdict(1)).to.equal("written");
  });
});
