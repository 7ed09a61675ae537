import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { judgeOrder, rememberOrder, type Remembered } from "#rollout/node-fence.ts";
import { Order } from "#rollout/order.ts";
import { Report, type Failure } from "#rollout/records.ts";
import { Statement } from "#rollout/spec.ts";
import { names } from "#updater/files.ts";

/** What a stand-in does otherwise than well, by the step that it is about; `hold` comes after the confirmation. */
export interface UpdaterBehaviour {
  readonly prepare?: Failure;
  readonly activate?: Failure;
  readonly hold?: Failure;
  readonly roll_back?: Failure;
  /** It takes no order. */
  readonly isSilent?: boolean;
  /** Ms until it goes back because nobody confirmed; a long time unless given. */
  readonly patience?: number;
}

/**
 * A node's updater that only moves a link: it speaks with whoever orders by the same files as the real one, which it reads and writes by
 * the same schemas, and fences by the same rule. `updater-process.ts FOLDER PROFILE`; FOLDER/behaviour.json may be there.
 */
const [folder = "", profile = ""] = process.argv.slice(2);
const at = (name: string): string => join(folder, name);
const read = (name: string): string | undefined => (existsSync(at(name)) ? readFileSync(at(name), "utf8") : undefined);
const put = (name: string, value: unknown): void => {
  writeFileSync(at(`${name}.new`), `${JSON.stringify(value)}\n`);
  renameSync(at(`${name}.new`), at(name));
};
const behaviour = (): UpdaterBehaviour => JSON.parse(read("behaviour.json") ?? "{}") as UpdaterBehaviour;

type Journal = Partial<Pick<Order, "fence">> & {
  past?: Remembered["past"];
  report?: Report;
  previous?: Report["present"];
  previousOf?: { readonly name: string; readonly brings: "runtime" };
};
let journal = JSON.parse(read(names.journal) ?? "{}") as Journal;
let boots = 0;

function present(): Report["present"] {
  const link = readFileSync(`${profile}.path`, "utf8").trim();
  return { id: link, version: link.replace(/^.*-/, "") };
}

export function moveProfile(path: string): void {
  boots += 1;
  const link = `${profile}-${process.pid}${boots}-link`;
  symlinkSync(path, link);
  symlinkSync(link.slice(dirname(profile).length + 1), `${profile}.new`);
  renameSync(`${profile}.new`, profile);
  writeFileSync(`${profile}.path`, path);
}

/** As the real one's schema orders its fields. */
function save(): void {
  const { fence, past, previous, previousOf, report } = journal;
  put(names.journal, { format: "kcore-updater/1", fence, past, previous, previousOf, report });
}

function say(state: Report["state"], more: Partial<Report> = {}): void {
  const { fence, report, previous } = journal;
  if (!fence) throw new Error("nobody gave an order");
  const said = {
    epoch: (report?.epoch ?? 0) + 1,
    fence,
    state,
    present: present(),
    ...(previous && journal.previousOf?.name === fence.name && previous.id !== present().id && { previous }),
    ...more,
  };
  journal.report = Report.parse({ ...said, at: Date.now() });
  save();
  put(names.report, journal.report);
}

async function carryOut({ step, signed, contact }: Order): Promise<void> {
  const { bundle, name: signedName } = Statement.parse(JSON.parse(signed.statement));
  const path = bundle?.storePath ?? "";
  const { [step as "prepare"]: failure, hold, patience = 600_000 } = behaviour();
  switch (step) {
    case "fence":
      return say(journal.report?.state ?? "fenced");
    case "prepare":
      say("preparing");
      await sleep(100);
      if (!failure && !existsSync(at(`bundles/${bundle?.sha256}`)) && !existsSync(at(`store/${bundle?.sha256}`)))
        return say("failed", { failure: { kind: "build", message: "the bundle was not fetched" } });
      if (failure) return say("failed", { failure });
      mkdirSync(at("store"), { recursive: true });
      writeFileSync(at(`store/${bundle?.sha256}`), "");
      return say("prepared");
    case "activate": {
      const before = present();
      rmSync(at("confirmed"), { force: true });
      say("activating", { previous: before });
      await sleep(100);
      if (failure) return say("failed", { failure });
      moveProfile(path);
      if (contact !== "bastion") throw new Error("this stand-in has no agent");
      say("activating", { previous: before, waitsFor: "bastion" });
      const end = Date.now() + patience;
      while (!existsSync(at("confirmed")) && Date.now() < end) await sleep(20);
      const late: Failure = { kind: "unreachable", message: "the bastion did not confirm it" };
      const problem = existsSync(at("confirmed")) ? hold : late;
      if (problem) {
        moveProfile(before.id);
        return say("failed", { failure: problem });
      }
      if (before.id !== path)
        journal = { ...journal, previous: before, previousOf: { name: signedName, brings: "runtime" } };
      return say("activated");
    }
    case "roll_back":
      say("rolling_back");
      await sleep(100);
      if (failure) return say("failed", { failure });
      if (journal.previous && journal.previousOf?.name === signedName) moveProfile(journal.previous.id);
      return say("rolled_back");
  }
}

mkdirSync(folder, { recursive: true });
if (!existsSync(`${profile}.path`)) moveProfile(process.argv[4] ?? "");
for (;;) {
  await sleep(20);
  if (behaviour().isSilent || !existsSync(at(names.inbox))) continue;
  renameSync(at(names.inbox), at(names.taken));
  const order = Order.parse(JSON.parse(read(names.taken) ?? ""));
  const { fence: known, past = [] } = journal;
  const remembered = known && { fence: known, past, isBusy: false };
  const verdict = judgeOrder(remembered, order.fence);
  if (verdict.accept) {
    journal = { ...journal, ...rememberOrder(remembered, order.fence) };
    save();
  }
  rmSync(at(names.taken));
  if (verdict.accept) await carryOut(order);
}
