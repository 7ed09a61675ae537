import type { AcceptedBodyOf, AnswerOf } from "#api/methods.ts";
import type { Records } from "../cluster/records.ts";
import { keys } from "../cluster/registers.ts";
import type { UpdateRecords } from "./update-records.ts";

/**
 * Notes that an operator's process begins to carry out the hooks of an update, or has ended. The last process that begins is the one
 * that is shown.
 */
export async function attendUpdate(
  { records, clock }: { readonly records: Records; readonly clock: () => number },
  { name, attendance }: UpdateRecords,
  { host, ended = false }: AcceptedBodyOf<"attendUpdate">,
  by: string,
): Promise<AnswerOf<"attendUpdate">> {
  const key = keys.update(name).attendance;
  if (!ended) return records.put([{ key, value: { by, host, at: new Date(clock()).toISOString() } }]);
  const isShown = attendance?.by === by && attendance.host === host;
  return records.put([{ key, value: isShown ? undefined : attendance }]);
}
