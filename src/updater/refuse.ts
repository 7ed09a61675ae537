import { mayBeMeant } from "#rollout/select.ts";
import type { Statement } from "#rollout/spec.ts";
import type { RolloutNode } from "#rollout/view.ts";
import { UpdateFailure } from "./failure.ts";
import type { Journal } from "./journal.ts";

/** What this node is called. */
export type Self = Pick<RolloutNode, "id" | "hostname" | "dc">;

/** What was signed for other nodes is nothing for this one, whoever brings it. @throws UpdateFailure */
export function refuseForOthers({ spec: { selector } }: Statement, self: Self): void {
  if (!mayBeMeant(self, selector))
    throw new UpdateFailure(
      "refused",
      `it does not mean this node, which is ${self.hostname} (${self.id}) in ${self.dc}`,
    );
}

/** What the bastion signed stays signed: a controller in wrong hands must not take a node back with it. @throws UpdateFailure */
export function refuseReplayed({ signedAt }: Statement, { held, spent, brings }: Journal): void {
  const [last, over] = [held[brings], spent[brings]];
  if (over !== undefined && Date.parse(signedAt) <= Date.parse(over))
    throw new UpdateFailure(
      "refused",
      `what was signed at ${signedAt} failed on this node, or was taken back: apply it --again, so that it is signed anew`,
    );
  if (last !== undefined && Date.parse(signedAt) < Date.parse(last))
    throw new UpdateFailure(
      "refused",
      `it was signed at ${signedAt}, and what this node took last at ${last}: apply it --again, so that it is signed anew`,
    );
}
