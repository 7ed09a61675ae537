import type { AcceptedBodyOf, AnswerOf } from "#api/methods.ts";
import { Ownership, type SignedStatement } from "#rollout/spec.ts";
import type { Records } from "../cluster/records.ts";
import { Refused } from "../cluster/refused.ts";
import { keys } from "../cluster/registers.ts";
import { readSigned, type SignedParts } from "./read-signed.ts";
import type { UpdateRecords } from "./update-records.ts";

/** Gives who owns an update, as the bastion signed it. @throws Refused, KcoreError UPDATE_UNSIGNED */
export function readOwnership(parts: SignedParts, name: string, signed: SignedStatement) {
  const { owner, epoch } = readSigned(parts, { name, signed, schema: Ownership });
  return { epoch, owner, signed };
}

/**
 * Writes the owner that the bastion signed, whichever controller is asked. Nodes refuse the owners of earlier epochs, and any other
 * owner of this one (docs/adr/0515-cluster-updates.md). @throws Refused UPDATE_OWNED, KcoreError UPDATE_UNSIGNED
 */
export async function takeOver(
  parts: SignedParts & { readonly records: Records },
  { name, owner: present }: Pick<UpdateRecords, "name" | "owner">,
  { ownership }: AcceptedBodyOf<"takeOverUpdate">,
  by: string,
): Promise<AnswerOf<"takeOverUpdate">> {
  const { signed, ...said } = readOwnership(parts, name, ownership);
  const isRepeated = said.epoch === present.epoch && said.owner === present.owner;
  if (said.epoch <= present.epoch && !isRepeated)
    throw new Refused(
      409,
      "UPDATE_OWNED",
      `“${name}” is owned by the controller ${present.owner} in epoch ${present.epoch}, and epoch ${said.epoch} was signed`,
      `kcore update cluster takeover ${name} signs the next epoch`,
    );
  if (!isRepeated) await parts.records.write([{ key: keys.update(name).owner, value: { ...said, signed, by } }]);
  return said;
}
