import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { followUpdates, type NodeUpdates } from "#agent/updates.ts";
import type { Controllers } from "#api/ask.ts";
import type { UpdateAnswer } from "#api/update-schemas.ts";
import type { Order } from "#rollout/order.ts";
import type { Fence, Report } from "#rollout/records.ts";
import { updatesFolder } from "#updater/files.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const fenceOf = (generation: number, seq: number): Fence => ({ name: "u", epoch: 1, owner: "c1", generation, seq });
const orderOf = (fence: Fence): Order => ({
  fence,
  step: "fence",
  signed: { statement: "{}", signature: "AA==", signer: "" },
});
const reportOf = (epoch: number, fence: Fence, state: Report["state"]): Report => ({
  epoch,
  fence,
  state,
  present: { id: "", version: "" },
  at: 0,
});

describe("the agent's part in cluster updates", () => {
  const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
  let dir: TempDir;
  let folder: string;
  let updates: NodeUpdates;
  let order: Order;
  /** What the controller was told, and how often it gave the order. */
  let told: Report[];
  let given: number;
  let isOver: boolean;

  /** As a controller answers: an order that is known is not said again, and whoever knows it waits. */
  const call = async (
    _method: string,
    said: { readonly report?: Report; readonly known?: Fence },
    { signal }: { readonly signal: AbortSignal },
  ): Promise<UpdateAnswer> => {
    if (said.report) told.push(said.report);
    if (JSON.stringify(said.known) === JSON.stringify(order.fence))
      await new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
      );
    given++;
    return { concerned: true, order };
  };

  beforeEach(async () => {
    dir = await makeTempDir("agent-updates");
    folder = updatesFolder(dir.path);
    await mkdir(folder);
    [told, given, isOver] = [[], 0, false];
    const tls = { caFile: join(dir.path, "ca"), certFile: join(dir.path, "cert") };
    const controllers = { ask: (ask: (client: unknown) => unknown) => ask({ call }) } as unknown as Controllers;
    const signal = new AbortController().signal;
    updates = followUpdates({ nodeId: "n1", stateDir: dir.path, tls, controllers, signal, log: quiet });
  });
  afterEach(async () => {
    isOver = true;
    await updates.stop();
    await dir.remove();
  });

  const say = async (report: Report): Promise<void> => {
    await writeFile(join(folder, "report.json"), JSON.stringify(report));
    while (!isOver && told.at(-1)?.epoch !== report.epoch) await new Promise((resolve) => setTimeout(resolve, 2));
  };
  /** The updater takes what lies there. */
  const take = async (): Promise<Fence> => {
    const inbox = join(folder, "inbox.json");
    while (!isOver) {
      const text = await readFile(inbox, "utf8").catch(() => undefined);
      await rm(inbox, { force: true });
      if (text !== undefined) return (JSON.parse(text) as Order).fence;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    throw new Error("it was not brought");
  };

  it("brings an order again that a busy updater refused, when the node has said something new, and not before", async () => {
    order = orderOf(fenceOf(1, 2));
    updates.concern();
    expect(await take()).to.deep.equal(fenceOf(1, 2));
    order = orderOf(fenceOf(2, 3));
    await say(reportOf(1, fenceOf(1, 2), "preparing"));
    expect(await take()).to.deep.equal(fenceOf(2, 3));
    expect(given).to.equal(2);
    await say(reportOf(2, fenceOf(1, 2), "prepared"));
    expect(await take()).to.deep.equal(fenceOf(2, 3));
    await say(reportOf(3, fenceOf(2, 3), "fenced"));
    expect(given).to.equal(3);
  });
});
