import { omitUndefined } from "#base/omit-undefined.ts";
import type { Records } from "./cluster/records.ts";
import { keys } from "./cluster/registers.ts";
import type { Bootstrap, ControllerConfig } from "./controller-config.ts";

/**
 * The reason why a controller with an empty state does not serve; undefined if it has sponsors to join. It may be a founder that lost
 * its state: a second cluster of the same name would take writes beside the first.
 */
export function whyEmpty({ replication: { join, rejoin } }: Pick<ControllerConfig, "replication">): string | undefined {
  if (join.length > 0) return undefined;
  const others = rejoin.length === 0 ? "it was told of no other controller" : `it asks ${rejoin.join(", ")}`;
  return (
    `its state is empty and it founds no second cluster by itself; ${others}. If it lost its state: kcore orchestrate deploy_node NODE, ` +
    "or kcore controller restore BACKUP; to begin a NEW cluster without all that the old one knew: kcore controller found, " +
    "or deploy_node with --set found_again=true"
  );
}

/**
 * The first writes of a cluster: the founder registers itself and the operators that deploy_node named, once, in the state
 * that `kcore controller found` made. These operators register every later controller and key (S-10).
 */
export async function foundCluster({
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
  // A restored state has these records already, and a record of an operator is written once.
  const operators = (bootstrap?.operators ?? []).filter(
    ({ name, spki }) => records.replica.get(keys.operator(name, spki)) === undefined,
  );
  const auth = { spki: key, dc, at, ...omitUndefined({ address: where }) };
  await records.write([
    { key: keys.controller(controllerId).auth, value: auth },
    ...operators.map(({ name, spki }) => ({ key: keys.operator(name, spki), value: { spki } })),
  ]);
}
