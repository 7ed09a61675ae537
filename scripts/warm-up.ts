import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeFarmProject } from "#support/farm-project.ts";
import { startFarm } from "#support/node-farm.ts";

/**
 * Lets a kcore that was built to be warmed up do what kcore does most: two simulated nodes behind real SSH, everything
 * changes and then nothing, seen in the live view. Each of its processes leaves what V8 has compiled beside the bundle
 * (src/cli/process/run-program.ts), added to what was there. Gives what went wrong, if anything did; then it starts slower, no more.
 */
export async function warmUp(main: string): Promise<string | undefined> {
  const home = await mkdtemp(join(tmpdir(), "kcore-warm-up-"));
  try {
    return await runAll(home, main);
  } catch (error) {
    return String(error);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function runAll(home: string, main: string): Promise<string | undefined> {
  const farm = await startFarm(2, { pace: 20 });
  try {
    await chmod(home, 0o700);
    writeFarmProject(home, farm);
    const ink = "--on n* --output ink";
    for (const words of ["--help", `state apply fleet ${ink}`, `orchestrate roll_out ${ink}`, "runs list"]) {
      const failure = await runOnce(home, [main, ...words.split(" ")]);
      if (failure !== undefined) return failure;
    }
    return undefined;
  } finally {
    await farm.stop();
  }
}

async function runOnce(home: string, words: readonly string[]): Promise<string | undefined> {
  const terminal = new URL("./pretend-terminal.ts", import.meta.url).href;
  const child = spawn(process.execPath, ["--import", terminal, ...words], {
    cwd: home,
    env: { PATH: process.env["PATH"], HOME: home, TERM: "xterm-256color", LANG: "C.UTF-8" },
    stdio: ["ignore", "ignore", "pipe"],
    timeout: 60_000,
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  const [code] = (await once(child, "close")) as [number | null];
  return code === 0 ? undefined : `exit ${code}: ${said.trim().slice(-2000)}`;
}
