import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { deliverUpdates, type OrderDelivery } from "#agent/order-delivery.ts";
import type { Controllers } from "#api/ask.ts";
import type { UpdateAnswer } from "#api/update-schemas.ts";
import type { Order } from "#rollout/order.ts";
import type { FencingToken, Report } from "#rollout/records.ts";
import { updateFiles, updatesFolder } from "#updater/files.ts";
import { emptyJournal, type Accepted } from "#updater/journal.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const fenceOf = (generation: number, seq: number): FencingToken => ({
  name: "u",
  epoch: 1,
  owner: "c1",
  generation,
  seq,
});
const byBastion = (seq: number): FencingToken => ({ ...fenceOf(1, seq), epoch: 2, owner: "bastion-1" });
const signed = { statement: "{}", signature: "AA==", signer: "" };
const orderOf = (fence: FencingToken): Order => ({ fence, step: "fence", signed, ownership: signed });
const reportOf = (epoch: number, fence: FencingToken, state: Report["state"]): Report => ({
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
  let delivery: OrderDelivery;
  let order: Order;
  /** The reports that the controller received, and the number of times it gave the order. */
  let told: Report[];
  let given: number;
  /** How often the agent waited for an order beyond its known one. */
  let waits: number;
  let brought: string[];
  let isOver: boolean;

  /** Answers as a controller does: it does not repeat a known order, and its agent waits. */
  const call = async (
    _method: string,
    said: { readonly report?: Report; readonly known?: FencingToken },
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
    dir = await makeTempDir("order-delivery");
    folder = updatesFolder(dir.path);
    await mkdir(folder);
    [told, given, waits, brought, isOver] = [[], 0, 0, [], false];
    const controllers = { ask: (ask: (client: unknown) => unknown) => ask({ call }) } as unknown as Controllers;
    const signal = new AbortController().signal;
    delivery = deliverUpdates({ nodeId: "n1", stateDir: dir.path, controllers, signal, log: quiet, random: () => 1 });
  });
  afterEach(async () => {
    isOver = true;
    await delivery.stop();
    await dir.remove();
  });

  const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
    while (!isOver && !(await holds())) await new Promise((resolve) => setTimeout(resolve, 2));
  };
  /** Puts this report into the updater's journal; `past` has orders of other updates. */
  const put = async (report: Report, accepted: Partial<Accepted> = {}): Promise<void> => {
    const aside = join(folder, "journal.json.new");
    await writeFile(aside, JSON.stringify({ ...emptyJournal(), fence: report.fence, report, ...accepted }));
    await rename(aside, join(folder, updateFiles.journal));
  };
  const say = async (report: Report): Promise<void> => {
    await put(report);
    await until(() => told.at(-1)?.epoch === report.epoch);
  };
  /** The updater takes the order in its inbox. */
  const take = async (): Promise<FencingToken> => {
    const taken = join(folder, updateFiles.taken);
    await until(() =>
      rename(join(folder, updateFiles.inbox), taken).then(
        () => true,
        () => false,
      ),
    );
    return (JSON.parse(await readFile(taken, "utf8")) as Order).fence;
  };

  it("brings an order again that a busy updater refused, when the node has said something new, and not before", async () => {
    order = orderOf(fenceOf(1, 2));
    delivery.start();
    expect(await take()).to.deep.equal(fenceOf(1, 2));
    await until(() => waits === 1);
    order = orderOf(fenceOf(2, 3));
    await say(reportOf(1, fenceOf(1, 2), "preparing"));
    expect(await take()).to.deep.equal(fenceOf(2, 3));
    await until(() => waits === 2);
    expect(given).to.equal(2);
    await say(reportOf(2, fenceOf(1, 2), "prepared"));
    expect(await take()).to.deep.equal(fenceOf(2, 3));
    await until(() => waits === 3);
    await say(reportOf(3, fenceOf(2, 3), "fenced"));
    expect(given).to.equal(3);
  });

  it("asks again for an order that it could not bring", async () => {
    order = orderOf(fenceOf(1, 2));
    // No file takes the place of a folder.
    await mkdir(join(folder, updateFiles.inbox, "full"), { recursive: true });
    delivery.start();
    await until(() => given > 1);
    await rename(join(folder, updateFiles.inbox), join(folder, "aside"));
    expect(await take()).to.deep.equal(fenceOf(1, 2));
  });

  it("brings no order of an owner that the node has left, whatever it reports", async () => {
    order = orderOf(fenceOf(1, 3));
    await put(reportOf(10, byBastion(1), "fenced"));
    delivery.start();
    await until(() => waits === 1);
    await say(reportOf(11, byBastion(2), "preparing"));
    await until(() => waits === 2);
    expect([given, brought]).to.deep.equal([2, []]);
    // The same owner sends the next epoch.
    order = orderOf({ ...fenceOf(1, 4), epoch: 3 });
    await say(reportOf(12, byBastion(2), "prepared"));
    expect(await take()).to.deep.equal(order.fence);
  });

  it("brings no order that the node has carried out, nor one of an update before the present one", async () => {
    const present = { ...fenceOf(1, 5), name: "u2" };
    const past = [fenceOf(1, 3)];
    for (const [epoch, fence] of [fenceOf(1, 3), present].entries()) {
      order = orderOf(fence);
      await put(reportOf(10 + epoch, { ...present, seq: 1 }, "fenced"), { fence: present, past });
      delivery.start();
      await until(() => waits === epoch + 1);
      expect(brought).to.deep.equal([]);
    }
  });
});
