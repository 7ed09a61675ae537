import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import ssh2 from "ssh2";

/**
 * Runs the most frequent commands of the bundle whose main file is `main`, so that V8's code for them is kept. The commands are the help, a
 * run that changes two nodes, runs that change little, the list of runs, and the completion of a target. The two nodes are folders of
 * this machine behind an SSH server without a socket. Each process of kcore writes the compiled code of the programs that it ran to files
 * `*.compiled` in the bundle's folder (src/cli/process/run-program.ts). Resolves with an error's text, if one occurred: then kcore starts slower.
 */
export async function warmUp(main: string): Promise<string | undefined> {
  const home = mkdtempSync(join(tmpdir(), "kcore-warm-up-"));
  try {
    writeProject(home);
    const ink = "--on n* --output ink";
    const atTerminal = [
      "--help",
      `state apply fleet ${ink}`,
      `orchestrate roll_out ${ink}`,
      "runs list",
      "completion candidates -- exec --on ",
    ];
    for (const words of [...atTerminal, "state apply fleet --on n*"]) {
      const failure = await runOnce(home, [main, ...words.split(" ")], atTerminal.includes(words));
      if (failure !== undefined) return failure;
    }
    return undefined;
  } catch (error) {
    return String(error);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

function writeProject(home: string): void {
  const write = (name: string, text: string): void => writeFileSync(join(home, name), text, { mode: 0o600 });
  for (const folder of ["roster", "states", "orchestrate", "n1", "n2"]) mkdirSync(join(home, folder), { mode: 0o700 });
  // ECDSA, for ssh2 cannot read one in 256 of the Ed25519 keys that it makes (mscdex/ssh2#1513).
  const makePair = () => ssh2.utils.generateKeyPairSync("ecdsa", { bits: 256 });
  const [host, login] = [makePair(), makePair()];
  write("host-key", host.private);
  write("login-key", login.private);
  const hostKey = host.public.split(" ").slice(0, 2).join(" ");
  write(
    "roster/nodes.yaml",
    `defaults: { user: root, identityFile: ${home}/login-key, roles: [worker] }
nodes:
${["n1", "n2"].map((name, index) => `  ${name}: { address: 192.0.2.${index}, stateDir: ${home}/${name}, hostKeys: [${hostKey}] }`).join("\n")}
`,
  );
  write("states/check.yaml", stateOf(2, "check"));
  write("states/fleet.yaml", stateOf(10, "fleet"));
  write(
    "orchestrate/roll_out.yaml",
    `description: The fleet in two stages
params:
  nodes: { type: target, required: true }
stages:
  - { id: prepare, on: "{{params.nodes}}", apply: [check] }
  - { id: fleet, on: "{{params.nodes}}", apply: [fleet] }
`,
  );
}

/**
 * A state with commands, files, folders and links in turn, below the node's state folder. The file modules refuse folders that do not belong
 * to root, so a build by another user has commands alone.
 */
function stateOf(steps: number, prefix: string): string {
  const kinds = [
    (path: string) => `command.run: { cmd: "echo done >${path}" }\n    creates: "${path}"`,
    (path: string) => `file.managed: { path: "${path}", content: "text\\n", mode: "0644" }`,
    (path: string) => `directory.managed: { path: "${path}" }`,
    (path: string) => `symlink.managed: { path: "${path}", target: elsewhere }`,
    (path: string) => `file.absent: { path: "${path}" }`,
  ].slice(0, process.getuid?.() === 0 ? undefined : 1);
  const lines = Array.from({ length: steps }, (_, index) => {
    const kind = kinds[index % kinds.length] as (path: string) => string;
    return `  - id: step ${index}\n    ${kind(`{{node.stateDir}}/${prefix}${index}`)}`;
  });
  return `description: ${steps} things\nsteps:\n${lines.join("\n")}\n`;
}

async function runOnce(home: string, words: readonly string[], atTerminal: boolean): Promise<string | undefined> {
  const host = `${new URL("./pretend-host.ts", import.meta.url).href}?folder=${pathToFileURL(home).href}/`;
  const terminal = new URL("./pretend-terminal.ts", import.meta.url).href;
  const loaded = [host, ...(atTerminal ? [terminal] : [])].flatMap((url) => ["--import", url]);
  const child = spawn(process.execPath, [...loaded, ...words], {
    cwd: home,
    env: { PATH: process.env["PATH"], HOME: home, TERM: "xterm-256color", LANG: "C.UTF-8" },
    stdio: ["ignore", "ignore", "pipe"],
    timeout: 60_000,
    // In a session of its own: kcore must not find the terminal of this build.
    detached: true,
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  const [code] = (await once(child, "close")) as [number | null];
  return code === 0 ? undefined : `exit ${code}: ${said.trim().slice(-2000)}`;
}
