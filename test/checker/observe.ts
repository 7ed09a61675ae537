import { untilTrue, type Controller } from "./controllers.ts";
import type { ListedConflict, View } from "./history.ts";

interface Side {
  readonly value: unknown;
}

/** Milliseconds until all controllers have the same transactions and hold the same; undefined: not in time. */
export async function timeToAgree(controllers: readonly Controller[]): Promise<number | undefined> {
  const holdsTheSame = async (): Promise<boolean> => {
    const answers = await Promise.all(controllers.map(({ client }) => client.get("/v1/replication")));
    if (answers.some(({ status, body }) => status !== 200 || body["vv"] === undefined)) return false;
    const held = answers.map(({ body }) => {
      const entries = Object.entries(body["vv"] as Record<string, number>).filter(([, seq]) => seq > 0);
      return JSON.stringify([entries.toSorted(([a], [b]) => (a < b ? -1 : 1)), body["digest"]]);
    });
    return new Set(held).size === 1;
  };
  return untilTrue("they hold the same", holdsTheSame).catch(() => undefined);
}

/** A controller's state, as far as the workload writes it. @throws Error when it does not answer */
export async function lookAt({ client, index }: Controller, nodes: readonly string[]): Promise<View> {
  const values = new Map<string, string>();
  const ask = async (path: string): Promise<Readonly<Record<string, unknown>>> => {
    let answer = await client.get(path);
    const isAnswered = async (): Promise<boolean> =>
      answer.status !== 0 || (answer = await client.get(path)).status !== 0;
    await untilTrue(`an answer of ${index}`, isAnswered);
    const { status, body } = answer;
    if (status !== 200) throw new Error(`GET ${path} at ${index}: ${status} ${JSON.stringify(body).slice(0, 200)}`);
    return body;
  };
  const { objects } = (await ask("/v1/objects")) as {
    objects: readonly { kind: string; name: string; value: { v?: string } }[];
  };
  for (const { kind, name, value } of objects) values.set(`object/${kind}/${name}`, value.v ?? JSON.stringify(value));
  for (const node of nodes) {
    const { approval, labels } = (await ask(`/v1/nodes/${node}`)) as {
      approval: string;
      labels: Record<string, string>;
    };
    values.set(`decision/${node}`, approval);
    for (const [name, value] of Object.entries(labels)) values.set(`label/${node}/${name}`, value);
  }
  const { conflicts } = (await ask("/v1/conflicts")) as {
    conflicts: readonly { id: string; key: string; winner: Side; loser: Side }[];
  };
  const listed = conflicts.flatMap(({ key, winner, loser }): readonly ListedConflict[] => {
    const name = workloadKeyOf(key);
    return name === undefined ? [] : [{ key: name, winner: valueIn(winner), loser: valueIn(loser) }];
  });
  return { at: index, values, conflicts: listed };
}

/** Acknowledges all conflicts, as an operator does after reading them. */
export async function acknowledgeConflicts({ client }: Controller): Promise<void> {
  const { body } = await client.get("/v1/conflicts");
  for (const { id } of (body["conflicts"] ?? []) as readonly { id: string }[])
    await client.post(`/v1/conflicts/${encodeURIComponent(id)}/ack`);
}

/** The workload's name of a register; undefined for decisions and for registers that the workload does not write. */
function workloadKeyOf(key: string): string | undefined {
  if (key.startsWith("object/")) return key;
  const [, node, label] = /^node\/([^/]+)\/label\/(.+)$/.exec(key) ?? [];
  return node === undefined ? undefined : `label/${node}/${label}`;
}

function valueIn({ value }: Side): string | null {
  if (value === null || value === undefined) return null;
  const { v, value: label } = value as { v?: string; value?: string };
  return v ?? label ?? JSON.stringify(value);
}
