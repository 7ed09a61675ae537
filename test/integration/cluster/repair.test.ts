import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { startControllers } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { findLost, putNumber, timeToAgree } from "#support/partitions.ts";
import { nodeProgram } from "#support/program.ts";

interface Repaired {
  readonly lostRecords: number;
  readonly behind: number;
  readonly lost: readonly { readonly key: string; readonly writer?: string }[];
  readonly lostFile?: string;
}

describe("a controller whose state was damaged, or put back", () => {
  let cluster: TestCluster;
  let controllers: readonly [TestController, TestController];
  let stop: () => Promise<void> = () => Promise.resolve();
  const acknowledged = new Map<string, number>();

  beforeEach(async () => {
    acknowledged.clear();
    cluster = await createTestCluster();
    const started = await startControllers(cluster, 2, { processes: true });
    controllers = started.controllers as typeof controllers;
    ({ stop } = started);
  });
  afterEach(async () => {
    await stop();
    await cluster.remove();
  });

  const put = async (controller: TestController, id: string, number: number): Promise<void> => {
    expect(await putNumber(controller, { id, number, acknowledged })).to.equal("ok");
  };
  const isReady = ({ operator }: TestController): Promise<boolean> =>
    operator.call("ready", {}).then(
      ({ ready }) => ready,
      () => false,
    );
  const maintain = async ({ folder }: TestController, ...words: readonly string[]): Promise<string> => {
    const config = join(folder, "controller.yaml");
    const args = [nodeProgram, "controller", ...words, "--config", config];
    return (await promisify(execFile)(process.execPath, args)).stdout;
  };
  const journalOf = async ({ dbPath }: TestController): Promise<string> =>
    join(
      dbPath,
      (await readdir(dbPath))
        .filter((name) => name.startsWith("journal-"))
        .toSorted()
        .at(-1) ?? "",
    );
  /** Changes a byte of the last record that names the key. */
  const damage = async (controller: TestController, key: string): Promise<void> => {
    const journal = await journalOf(controller);
    const bytes = await readFile(journal);
    const at = bytes.lastIndexOf(key);
    bytes[at + key.length - 1] = (bytes[at + key.length - 1] ?? 0) ^ 1;
    await writeFile(journal, bytes);
  };
  const refusalToStart = (controller: TestController): Promise<string> =>
    controller.start().then(
      () => "it started",
      (error: unknown) => String(error),
    );

  it("V5: keeps all but the damaged record when it is repaired, names that, and gets it back from the other", async () => {
    const [other, damaged] = controllers;
    for (let number = 1; number <= 40; number++) await put(damaged, `Kept/${number}`, number);
    await timeToAgree(controllers);
    // What only it has, behind the damage.
    process.kill(other.pid(), "SIGSTOP");
    for (let number = 41; number <= 45; number++) await put(damaged, `Kept/${number}`, number);
    await damaged.stop("SIGKILL");
    await damage(damaged, "object/Kept/20");
    expect(await refusalToStart(damaged)).to.match(/"code":"STORE_CORRUPT"/);
    const text = await maintain(damaged, "repair", "-o", "json");
    const { lostRecords, behind, lost, lostFile = "" } = JSON.parse(text) as Repaired;
    expect({ lostRecords, lost: lost.length }).to.deep.equal({ lostRecords: 1, lost: 1 });
    expect(behind).to.be.greaterThan(24);
    // Its last character is the one that was changed.
    expect(lost[0]?.key).to.match(/^object\/Kept\/2./);
    expect(lost[0]?.writer).to.equal(damaged.id);
    expect(JSON.parse(await readFile(lostFile, "utf8"))).to.deep.equal({ lostRecords, lost });
    process.kill(other.pid(), "SIGCONT");
    await damaged.start();
    await eventually(() => isReady(damaged));
    await timeToAgree(controllers);
    expect(await findLost(controllers, acknowledged)).to.deep.equal([]);
  });
});
