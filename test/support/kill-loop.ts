import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import type { TestCluster } from "./cluster.ts";
import { startController } from "./controllers.ts";

export interface KillCount {
  readonly kills: number;
  readonly acknowledged: number;
}

/**
 * Kills a process that writes to a store with SIGKILL, again and again, after as many acknowledged writes as `random` chooses.
 * @throws Error when a number that was acknowledged is not found by the next process, or the store cannot be opened
 */
export async function killWriters({
  folder,
  kills,
  random,
  onKill,
}: {
  readonly folder: string;
  readonly kills: number;
  readonly random: () => number;
  readonly onKill?: ((count: KillCount) => void) | undefined;
}): Promise<KillCount> {
  let highest = 0;
  let acknowledged = 0;
  for (let kill = 0; kill <= kills; kill++) {
    const told = await lifeOf(folder, kill < kills ? Math.floor(random() * 100) : 0);
    const found = Number(/^found (\d+)$/m.exec(told)?.[1] ?? Number.NaN);
    if (!(found >= highest)) throw new Error(`kill ${kill}: ${highest} was acknowledged, found: ${told.slice(0, 500)}`);
    const numbers = told
      .split("\n")
      .filter((line) => /^\d+$/.test(line))
      .map(Number);
    acknowledged += numbers.length;
    highest = Math.max(found, ...numbers);
    onKill?.({ kills: kill, acknowledged });
  }
  return { kills, acknowledged };
}

/** What a writer told until it was killed, when it had told so many numbers. */
async function lifeOf(folder: string, numbers: number): Promise<string> {
  const program = resolve(import.meta.dirname, "store-writer.ts");
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program, folder], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let told = "";
  const closed = once(child, "close");
  const enough = new Promise<void>((isEnough) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      told += text;
      const lines = told.slice(told.indexOf("found ")).split("\n").length - 1;
      if (told.includes("found ") && lines > numbers) isEnough();
    });
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (told += text));
  await Promise.race([enough, closed]);
  child.kill("SIGKILL");
  await closed;
  // The last line may be half of a number.
  return told.slice(0, told.lastIndexOf("\n") + 1);
}

/**
 * Kills a real controller with SIGKILL, again and again, while operators write to it over its API.
 * @throws Error when a write that was acknowledged is not there after a restart, or it does not start
 */
export async function killController({
  cluster,
  kills,
  random,
  writers = 4,
  onKill,
}: {
  readonly cluster: TestCluster;
  readonly kills: number;
  readonly random: () => number;
  readonly writers?: number;
  readonly onKill?: ((count: KillCount) => void) | undefined;
}): Promise<KillCount> {
  const controller = await startController(cluster, { process: true });
  const last = Array.from({ length: writers }, () => 0);
  let acknowledged = 0;
  try {
    for (let kill = 0; kill < kills; kill++) {
      const goal = acknowledged + Math.floor(random() * 8);
      const reached = Promise.withResolvers<void>();
      const write = async (writer: number): Promise<void> => {
        for (let number = (last[writer] ?? 0) + 1; ; number++) {
          await controller.operator.call("putObject", { value: { number } }, { id: `Kill/writer-${writer}` });
          last[writer] = number;
          acknowledged++;
          if (acknowledged >= goal) reached.resolve();
        }
      };
      const writing = Promise.allSettled(last.map((_, writer) => write(writer)));
      await Promise.race([reached.promise, writing]);
      await controller.stop("SIGKILL");
      await writing;
      await controller.start();
      const { objects } = await controller.operator.call("listObjects", {});
      for (const [writer, number] of last.entries()) {
        const found = objects.find(({ name }) => name === `writer-${writer}`)?.value as { number?: number } | undefined;
        if ((found?.number ?? 0) < number) {
          throw new Error(`kill ${kill}: writer ${writer}: ${number} was acknowledged, found: ${found?.number}`);
        }
        // What was durable, but not yet told, may be there.
        last[writer] = found?.number ?? 0;
      }
      onKill?.({ kills: kill + 1, acknowledged });
    }
  } finally {
    await controller.end();
  }
  return { kills, acknowledged };
}
