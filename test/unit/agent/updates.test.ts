import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { NodeUpdates } from "#agent/follow-orders.ts";
import { followUpdates } from "#agent/updates.ts";
import type { Controllers } from "#api/ask.ts";
import type { UpdateAnswer } from "#api/update-schemas.ts";
import type { Order } from "#rollout/order.ts";
import type { Fence, Report } from "#rollout/records.ts";
import { updatesFolder } from "#updater/files.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const fenceOf = (generation: number, seq: number): Fence => ({ name: "u", epoch: 1, owner: "c1", generation, seq });
const signed = { statement: "{}", signature: "AA==", signer: "" };
const orderOf = (fence: Fence): Order => ({ fence, step: "fence", signed, ownership: signed });
const reportOf = (epoch: number, fence: Fence, state: Report["state"]): Report => ({
  epoch,
  fence,
  state,
  present: { id: "", version: "" },
  at: 0,
});

describe("the agent's part in cluster updates", () => {
  const quiet = {
    info: (message: string) => message === "an order of an update" && brought.push(message),
    warn: () => undefined,
    error: () => undefined,
  };
  let dir: TempDir;
  let folder: string;
  let updates: NodeUpdates;
  let order: Order;
  /** What the controller was told, and how often it gave the order. */
  let told: Report[];
  let given: number;
  /** How often it waited for another order than the one that it knows. */
  let waits: number;
  let brought: string[];
  let isOver: boolean;

  /** As a controller answers: an order that is known is not said again, and whoever knows it waits. */
  const call = async (
    _method: string,
    said: { readonly report?: Report; readonly known?: Fence },
    { signal }: { readonly signal: AbortSignal },
  ): Promise<UpdateAnswer> => {
    signal.throwIfAborted();
    if (said.report) told.push(said.report);
    if (JSON.stringify(said.known) === JSON.stringify(order.fence)) {
      waits++;
      await new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
      );
    }
    given++;
    return { concerned: true, order };
  };

  beforeEach(async () => {
    dir = await makeTempDir("agent-updates");
    folder = updatesFolder(dir.path);
    await mkdir(folder);
    [told, given, waits, brought, isOver] = [[], 0, 0, [], false];
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

  const put = async (report: Report): Promise<void> => {
    const aside = join(folder, "report.json.new");
    await writeFile(aside, JSON.stringify(report));
    await rename(aside, join(folder, "report.json"));
  };
  const say = async (report: Report): Promise<void> => {
    await put(report);
    while (!isOver && told.at(-1)?.epoch !== report.epoch) await new Promise((resolve) => setTimeout(resolve, 2));
  };
  /** The updater takes what lies there. */
  const take = async (): Promise<Fence> => {
    const taken = join(folder, "taken.json");
    while (!isOver) {
      const isThere = await rename(join(folder, "inbox.json"), taken).then(
        () => true,
        () => false,
      );
      if (isThere) return (JSON.parse(await readFile(taken, "utf8")) as Order).fence;
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

  describe("asks the node's memory first", () => {
    const byBastion = (seq: number): Fence => ({ ...fenceOf(1, seq), epoch: 2, owner: "bastion-1" });
    const remember = (fence: Fence, ...past: readonly Fence[]): Promise<void> =>
      writeFile(join(folder, "journal.json"), JSON.stringify({ format: "kcore-updater/1", fence, past }));
    /** Until it has looked at the order so often, and waits for another one. */
    const followed = async (times: number): Promise<void> => {
      updates.concern();
      while (!isOver && waits < times) await new Promise((resolve) => setTimeout(resolve, 2));
    };

    it("and brings no order of an owner that the node has left, with whatever word", async () => {
      order = orderOf(fenceOf(1, 3));
      await put(reportOf(10, byBastion(1), "fenced"));
      await followed(1);
      await say(reportOf(11, byBastion(2), "preparing"));
      await followed(2);
      expect([given, brought]).to.deep.equal([2, []]);
      // Its own next one is brought.
      order = orderOf({ ...fenceOf(1, 4), epoch: 3 });
      await say(reportOf(12, byBastion(2), "prepared"));
      expect(await take()).to.deep.equal(order.fence);
    });

    it("and brings no order that the node has carried out, nor one of an update before the present one", async () => {
      const present = { ...fenceOf(1, 5), name: "u2" };
      await remember(present, fenceOf(1, 3));
      for (const [epoch, fence] of [fenceOf(1, 3), present].entries()) {
        order = orderOf(fence);
        await put(reportOf(10 + epoch, { ...present, seq: 1 }, "fenced"));
        await followed(epoch + 1);
        expect(brought).to.deep.equal([]);
      }
    });

    it("but not what it answered without having accepted it", async () => {
      order = orderOf(fenceOf(1, 4));
      await remember(fenceOf(1, 3));
      await put(reportOf(10, { ...fenceOf(1, 1), epoch: 9, owner: "c9" }, "failed"));
      updates.concern();
      expect(await take()).to.deep.equal(order.fence);
    });
  });
});
