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

describe("an agent that delivers orders to the updater", () => {
  const log = {
    info: (message: string) => message === "an order of an update" && delivered.push(message),
    warn: () => undefined,
    error: () => undefined,
  };
  let dir: TempDir;
  let folder: string;
  let delivery: OrderDelivery;
  let order: Order;
  /** The reports that the controller received, and the number of times it gave the order. */
  let reports: Report[];
  let given: number;
  /** How often the agent waited for an order beyond its known one. */
  let waits: number;
  let delivered: string[];
  let isOver: boolean;

  /** A controller: an agent that knows the order waits until another order comes. */
  const call = async (
    _method: string,
    request: { readonly report?: Report; readonly known?: FencingToken },
    { signal }: { readonly signal: AbortSignal },
  ): Promise<UpdateAnswer> => {
    signal.throwIfAborted();
    if (request.report) reports.push(request.report);
    if (JSON.stringify(request.known) === JSON.stringify(order.fence)) {
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
    [reports, given, waits, delivered, isOver] = [[], 0, 0, [], false];
    const controllers = { ask: (ask: (client: unknown) => unknown) => ask({ call }) } as unknown as Controllers;
    const signal = new AbortController().signal;
    delivery = deliverUpdates({ nodeId: "n1", stateDir: dir.path, controllers, signal, log, random: () => 1 });
  });
  afterEach(async () => {
    isOver = true;
    await delivery.stop();
    await dir.remove();
  });

  const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
    while (!isOver && !(await holds())) await new Promise((resolve) => setTimeout(resolve, 2));
  };
  /** Writes this report into the updater's journal; `accepted.past` has orders of former updates. */
  const journalReport = async (report: Report, accepted: Partial<Accepted> = {}): Promise<void> => {
    const aside = join(folder, "journal.json.new");
    await writeFile(aside, JSON.stringify({ ...emptyJournal(), fence: report.fence, report, ...accepted }));
    await rename(aside, join(folder, updateFiles.journal));
  };
  const sendReport = async (report: Report): Promise<void> => {
    await journalReport(report);
    await until(() => reports.at(-1)?.epoch === report.epoch);
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

  it("delivers an order that a busy updater refused again, after the updater's next report", async () => {
    order = orderOf(fenceOf(1, 2));
    delivery.start();
    expect(await take()).to.deep.equal(fenceOf(1, 2));
    await until(() => waits === 1);
    order = orderOf(fenceOf(2, 3));
    await sendReport(reportOf(1, fenceOf(1, 2), "preparing"));
    expect(await take()).to.deep.equal(fenceOf(2, 3));
    await until(() => waits === 2);
    expect(given).to.equal(2);
    await sendReport(reportOf(2, fenceOf(1, 2), "prepared"));
    expect(await take()).to.deep.equal(fenceOf(2, 3));
    await until(() => waits === 3);
    await sendReport(reportOf(3, fenceOf(2, 3), "fenced"));
    expect(given).to.equal(3);
  });

  it("requests an order again that it could not write into the inbox", async () => {
    order = orderOf(fenceOf(1, 2));
    // rename() does not replace a folder by a file.
    await mkdir(join(folder, updateFiles.inbox, "full"), { recursive: true });
    delivery.start();
    await until(() => given > 1);
    await rename(join(folder, updateFiles.inbox), join(folder, "aside"));
    expect(await take()).to.deep.equal(fenceOf(1, 2));
  });

  it("delivers no order of an owner with an older epoch than the node's", async () => {
    order = orderOf(fenceOf(1, 3));
    await journalReport(reportOf(10, byBastion(1), "fenced"));
    delivery.start();
    await until(() => waits === 1);
    await sendReport(reportOf(11, byBastion(2), "preparing"));
    await until(() => waits === 2);
    expect([given, delivered]).to.deep.equal([2, []]);
    // The same owner sends the next epoch.
    order = orderOf({ ...fenceOf(1, 4), epoch: 3 });
    await sendReport(reportOf(12, byBastion(2), "prepared"));
    expect(await take()).to.deep.equal(order.fence);
  });

  it("delivers no order that the node has carried out, nor one of a former update", async () => {
    const present = { ...fenceOf(1, 5), name: "u2" };
    const past = [fenceOf(1, 3)];
    for (const [epoch, fence] of [fenceOf(1, 3), present].entries()) {
      order = orderOf(fence);
      await journalReport(reportOf(10 + epoch, { ...present, seq: 1 }, "fenced"), { fence: present, past });
      delivery.start();
      await until(() => waits === epoch + 1);
      expect(delivered).to.deep.equal([]);
    }
  });
});
