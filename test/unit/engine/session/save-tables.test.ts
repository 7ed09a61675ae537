import { expect } from "chai";
import { saveTables } from "#engine/session/save-tables.ts";
import { runOnNode, silentHost } from "#support/fake-session.ts";
import { MemoryTables } from "#support/tables.ts";

describe("saveTables with a silent node", () => {
  const unsaved = async (signal: AbortSignal): Promise<unknown> => {
    const { results, isCut } = await saveTables({
      host: silentHost(),
      run: runOnNode,
      names: ["S1"],
      store: new MemoryTables(),
      occasion: () => ({ node: "n1", nodeId: "1", run: "r", before: "wipe", grants: [] }),
      sudoPassword: () => Promise.resolve(undefined),
      signal,
    });
    expect(isCut).to.equal(true);
    return results.get("S1");
  };

  it("ends at the time limit", async () =>
    expect(await unsaved(AbortSignal.timeout(5))).to.deep.equal({ unsaved: "the node took too long to tell it" }));

  it("ends when the run is stopped", async () =>
    expect(await unsaved(AbortSignal.abort())).to.deep.equal({ unsaved: "the run was stopped" }));
});
