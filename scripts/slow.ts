import { spawn, type ChildProcess } from "node:child_process";

// npm run test:slow [-- SUITE|FILE…]: suites (by default unit and integration) or test files, while KCORE_LOAD processes
// (by default 8) take the machine's cores.

const named = process.argv.slice(2);
const suites = named.length === 0 ? ["unit", "integration"] : named;
const commands = suites.map((name) =>
  name.endsWith(".ts") ? ["npx", "mocha", name] : ["npm", "run", "--silent", `test:${name}`],
);

// Each burner ends with its parent: a killed test leaves no core busy.
const burn = "const { ppid } = process; for (;;) { if (process.ppid !== ppid) break; for (let n = 0; n < 1e8; n++); }";
const burners = Array.from({ length: Number(process.env["KCORE_LOAD"] ?? 8) }, () =>
  spawn(process.execPath, ["-e", burn], { stdio: "ignore" }),
);
let running: ChildProcess | undefined;
const end = (): void => {
  for (const burner of burners) burner.kill("SIGKILL");
};
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(signal, () => {
    end();
    running?.kill(signal);
  });
try {
  for (const [command = "", ...words] of commands) {
    running = spawn(command, words, { stdio: "inherit" });
    const code = await new Promise<number>((resolve) => running?.once("close", (status) => resolve(status ?? 1)));
    if (code !== 0) process.exitCode = code;
  }
} finally {
  end();
}
