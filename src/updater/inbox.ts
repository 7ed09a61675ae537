import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { omitUndefined } from "#base/omit-undefined.ts";
import { checkOrder, rememberOrder, type OrderMemory } from "#rollout/node-fence.ts";
import { Order, verifyManifest, verifyOwner } from "#rollout/order.ts";
import { mayBeSelected } from "#rollout/selection.ts";
import { updateKindOf, type UpdateStatement } from "#rollout/spec.ts";
import { UpdateFailure } from "./failure.ts";
import { updateFiles } from "./files.ts";
import { isBoundToRollout, errorMessage, parseAs, type Journal, type UpdaterJournal } from "./journal.ts";
import type { OwnNode, UpdaterParts } from "./ports.ts";

/** Moves every order of the inbox into the journal. `taken.json` stays until all work is done: after a crash systemd starts an updater for it. */
export async function takeOrders(parts: UpdaterParts, journal: UpdaterJournal): Promise<void> {
  const { ports, folder } = parts;
  while (await ports.move(join(folder, updateFiles.inbox), takenFile(parts))) await readTaken(parts, journal);
}

/** Enters the order of `taken.json` in the journal, unless there is none. An updater that was killed may have left it there. */
export async function readTaken(parts: UpdaterParts, journal: UpdaterJournal): Promise<void> {
  const text = await parts.ports.read(takenFile(parts));
  if (text === undefined) return;
  const order = parseAs(Order, text);
  if (order) await takeOrder(parts, journal, order);
  else parts.log.warn("the inbox held no order");
}

export function takenFile({ folder }: UpdaterParts): string {
  return join(folder, updateFiles.taken);
}

async function takeOrder({ log, verify }: UpdaterParts, journal: UpdaterJournal, order: Order): Promise<void> {
  const { fence, step, contact = "controller" } = order;
  const refuse = (why: string): void => log.warn("refused an order", { why, order: fence });
  const { data } = journal;
  const { doing } = data;
  const checked = checkOrder(remembered(data), fence);
  if (!checked.accept) return checked.why === "refused" ? refuse(checked.message) : undefined;
  try {
    await verifyOwner(order, verify);
  } catch (error) {
    // No report: a report would confirm that owner.
    return refuse(errorMessage(error));
  }
  let statement: UpdateStatement;
  try {
    statement = await verifyManifest(order, verify);
  } catch (error) {
    refuse(errorMessage(error));
    // The present work, which the bastion signed, continues.
    if (doing ?? data.next) return;
    remember(data, fence);
    return journal.report({ state: "failed", failure: new UpdateFailure("refused", errorMessage(error)).failure });
  }
  log.info("takes an order", { step, ...fence });
  if (!doing) data.brings = updateKindOf(statement.spec);
  const isSame = remember(data, fence);
  if (step === "hold") {
    if (doing) doing.isConfirmed = true;
  } else if (step === "fence" || (doing?.step === step && isDeepStrictEqual(doing.statement, statement)))
    delete data.next;
  else data.next = { step, statement, contact };
  if (data.next && !doing) return journal.save();
  // An order that begins no step is answered with the last report, under the present owner's token.
  const { report } = data;
  await journal.report(
    report && isSame
      ? { state: report.state, ...omitUndefined({ failure: report.failure, waitsFor: report.waitsFor }) }
      : { state: "fenced" },
  );
}

function remembered(journal: Journal): OrderMemory | undefined {
  const { fence, past } = journal;
  return fence && { fence, past, isBusy: isBoundToRollout(journal) };
}

/**
 * Stores an order's token; returns whether it belongs to the present rollout and generation. If not, the preparation is
 * forgotten.
 */
function remember(journal: Journal, fence: Order["fence"]): boolean {
  const { fence: known } = journal;
  const { past = [] } = rememberOrder(remembered(journal), fence);
  Object.assign(journal, { fence, past: [...past] });
  const isSame = known?.name === fence.name && known.generation === fence.generation;
  if (!isSame) delete journal.prepared;
  return isSame;
}

/** Refuses a statement whose selector does not match this node. @throws UpdateFailure */
export function refuseForOthers({ spec: { selector } }: UpdateStatement, self: OwnNode): void {
  if (!mayBeSelected(self, selector))
    throw new UpdateFailure(
      "refused",
      `it does not mean this node, which is ${self.hostname} (${self.id}) in ${self.dc}`,
    );
}

/** Refuses an old statement, with which a stolen controller could take the node back to an old version. @throws UpdateFailure */
export function refuseReplayed({ signedAt }: UpdateStatement, { held, spent, brings }: Journal): void {
  const [lastHeld, lastSpent] = [held[brings], spent[brings]];
  if (lastSpent !== undefined && Date.parse(signedAt) <= Date.parse(lastSpent))
    throw new UpdateFailure(
      "refused",
      `the update signed at ${signedAt} failed on this node, or was taken back: apply it --again, so that it is signed anew`,
    );
  if (lastHeld !== undefined && Date.parse(signedAt) < Date.parse(lastHeld))
    throw new UpdateFailure(
      "refused",
      `it was signed at ${signedAt}, and what this node took last at ${lastHeld}: apply it --again, so that it is signed anew`,
    );
}
