import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createTestCluster, eventually, issueTo } from "#support/cluster.ts";
import { spkiOf, startControllers, type TestController } from "#support/controllers.ts";
import { findLost } from "#support/partitions.ts";
import { freePort } from "#support/ports.ts";
import { Chance } from "../checker/random.ts";
import type { LiarPlan } from "./liar-process.ts";
import type { Habit } from "./liar.ts";

export interface Outcome {
  readonly seed: number;
  readonly failures: readonly string[];
  readonly acknowledged: number;
  readonly agreedMs: number | undefined;
}

const agreeWithinMs = 10_000;

/** Three controllers, and one that lies, as processes that speak over mTLS; lied to, the liar removed, judged. */
export async function runSeedOverTls(seed: number, only?: readonly Habit[]): Promise<Outcome> {
  const cluster = await createTestCluster();
  const { controllers, stop } = await startControllers(cluster, 3, { processes: true });
  let liar: ChildProcess | undefined;
  try {
    const [first] = controllers as [TestController];
    const id = randomUUID();
    const host = "127.0.0.77";
    const port = await freePort(host);
    const credentials = issueTo(cluster.authority, "controller", id, { host });
    await first.operator.call(
      "registerController",
      { spki: spkiOf(credentials), address: `${host}:${port}`, dc: "DC2" },
      { id },
    );
    const victims = controllers.map(({ endpoint }) => ({
      host: endpoint.split(":")[0] ?? "",
      port: Number(endpoint.split(":")[1]),
    }));
    const plan = { id, cluster: "lab", host, port, credentials, victims, seed, ...(only && { only }) };
    liar = await startLiar(plan);
    const outcome = await judged(controllers, id, seed);
    if (liar.exitCode !== null) throw new Error(`the liar itself ended with ${liar.exitCode}`);
    return outcome;
  } finally {
    if (liar) await endLiar(liar);
    await stop();
    await cluster.remove();
  }
}

async function startLiar(plan: LiarPlan): Promise<ChildProcess> {
  const words = ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, "liar-process.ts")];
  const liar = spawn(process.execPath, words, { stdio: ["pipe", "pipe", "inherit"] });
  liar.stdin.write(`${JSON.stringify(plan)}\n`);
  await once(liar.stdout, "data");
  return liar;
}

async function endLiar(liar: ChildProcess): Promise<void> {
  if (liar.exitCode !== null || liar.signalCode !== null) return;
  const gone = once(liar, "exit");
  liar.kill("SIGKILL");
  await gone;
}

async function judged(controllers: readonly TestController[], liarId: string, seed: number): Promise<Outcome> {
  const chance = new Chance(seed);
  const failures: string[] = [];
  const acknowledged = new Map<string, number>();
  const revoked = new Set<string>();
  let count = 0;
  let isOn = true;
  const writers = controllers.map(async ({ operator }, place) => {
    for (let turn = 1; isOn; turn++) {
      const isRevocation = turn % 10 === 0;
      const spki = `${seed}${place}${turn}`.padStart(64, "0");
      const name = `Kept/c${place}-${turn % 8}`;
      const asked: Promise<unknown> = isRevocation
        ? operator.call("revoke", { spki, reason: "stolen" })
        : operator.call("putObject", { value: { number: turn } }, { id: name });
      await asked.then(
        () => {
          count++;
          if (isRevocation) revoked.add(spki);
          else acknowledged.set(name, turn);
        },
        () => undefined,
      );
      await sleep(20);
    }
  });
  await sleep(chance.between(4_000, 8_000));
  const alarms = await alarmsAt(controllers);
  const steward = chance.pick(controllers);
  const removedAt = performance.now();
  const remove = (): Promise<boolean> =>
    steward.operator.call("removeController", { reason: "it lies" }, { id: liarId }).then(
      () => true,
      () => false,
    );
  if (!(await inTime(remove))) failures.push("the liar could not be removed");
  isOn = false;
  await Promise.all(writers);
  const isAgreed = await inTime(() => isSame(controllers));
  const agreedMs = isAgreed ? performance.now() - removedAt : undefined;
  if (!isAgreed) failures.push(`no agreement within ${agreeWithinMs} ms of the removal`);
  for (const lost of await findLost(controllers, acknowledged)) failures.push(`lost: ${lost}`);
  const known = [...alarms, ...(await alarmsAt(controllers))];
  if (!known.some((text) => text.includes(liarId))) failures.push("no alarm names it");
  for (const [place, { operator, endpoint }] of controllers.entries()) {
    // Who is told that it was there already holds it.
    for (const spki of [...revoked].slice(-20)) {
      const { result } = await operator.call("revoke", { spki, reason: "stolen" }).catch(() => ({ result: "refused" }));
      if (result !== "unchanged") failures.push(`a revocation is lost at ${endpoint}: ${result}`);
    }
    const put = operator.call("putObject", { value: { number: 1 } }, { id: `After/c${place}` });
    await put.catch((error: unknown) =>
      failures.push(`${endpoint} takes no writes after the removal: ${String(error)}`),
    );
  }
  return { seed, failures, acknowledged: count, agreedMs };
}

function inTime(look: () => Promise<boolean>): Promise<boolean> {
  return eventually(look).catch(() => false);
}

async function alarmsAt(controllers: readonly TestController[]): Promise<readonly string[]> {
  const states = await Promise.all(controllers.map(({ operator }) => operator.call("replicationStatus", {})));
  return states.flatMap(({ alarms }) => alarms.map(({ message }) => message));
}

async function isSame(controllers: readonly TestController[]): Promise<boolean> {
  const states = await Promise.all(controllers.map(({ operator }) => operator.call("replicationStatus", {})));
  const views = states.map(({ vv, digest }) =>
    JSON.stringify([Object.entries(vv).toSorted(([a], [b]) => (a < b ? -1 : 1)), digest]),
  );
  return new Set(views).size === 1;
}
