import { defined } from "#optional/defined.ts";
import type { Records } from "./cluster/records.ts";
import { keys } from "./cluster/registers.ts";
import type { Bootstrap } from "./controller-config.ts";

/**
 * The first words of a cluster: its first controller registers itself and the operators that deploy_node named. Only the
 * founder says them, once; every later controller and key is registered by those (S-10).
 */
export async function found({
  records,
  bootstrap,
  controllerId,
  dc,
  key,
  address,
  clock,
}: {
  readonly records: Records;
  readonly bootstrap: Bootstrap | undefined;
  readonly controllerId: string;
  readonly dc: string;
  /** SHA-256 of this controller's public key. */
  readonly key: string;
  readonly address: string;
  readonly clock: () => number;
}): Promise<void> {
  const at = new Date(clock()).toISOString();
  const where = bootstrap?.controller.address ?? (address === "" ? undefined : address);
  const auth = { spki: key, dc, at, ...defined({ address: where }) };
  await records.write([
    { key: keys.controller(controllerId).auth, value: auth },
    ...(bootstrap?.operators ?? []).map(({ name, spki }) => ({ key: keys.operator(name, spki), value: { spki } })),
  ]);
}
