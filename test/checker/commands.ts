import { spawn } from "node:child_process";

/** Runs a command to its end; gives its output. @throws Error with its stderr when it fails */
export async function must(words: readonly string[], input = ""): Promise<string> {
  const { code, stdout, stderr } = await run(words, input);
  if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}: ${stderr.trim()}`);
  return stdout;
}

/** Runs a command to its end and gives its exit code, also if it failed. */
export function run(
  [command = "", ...args]: readonly string[],
  input = "",
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout, stderr }));
    child.stdin.on("error", () => undefined).end(input);
  });
}
