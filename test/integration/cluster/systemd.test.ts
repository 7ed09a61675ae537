import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { createSupervisor } from "#api/supervisor.ts";
import { eventually } from "#support/cluster.ts";
import { makeTempDir } from "#support/temp-dir.ts";
import type { TempDir } from "#support/temp-dir.ts";

describe("notifications of the daemons to systemd", () => {
  let dir: TempDir;
  let socket: string;
  let received = "";
  let systemd: ChildProcess | undefined;
  const supervise = (environment: Readonly<Record<string, string | undefined>>, problems: string[] = []) =>
    createSupervisor({ environment, pid: process.pid, onProblem: (reason) => problems.push(reason) });

  beforeEach(async () => {
    dir = await makeTempDir("notify");
    socket = join(dir.path, "notify");
    received = "";
  });
  afterEach(async () => {
    systemd?.kill("SIGKILL");
    systemd = undefined;
    await dir.remove();
  });

  /** Listens as systemd does, and answers the barrier of systemd-notify by closing the file descriptor. */
  const listen = async (): Promise<void> => {
    const program = `
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("listening", flush=True)
while True:
    text, fds, _, _ = socket.recv_fds(s, 4096, 8)
    for fd in fds: os.close(fd)
    print(text.decode(), flush=True)
`;
    systemd = spawn("python3", ["-c", program, socket], { stdio: ["ignore", "pipe", "inherit"] });
    systemd.stdout?.setEncoding("utf8").on("data", (text: string) => (received += text));
    await eventually(() => received.includes("listening"));
  };

  it("are not sent without NOTIFY_SOCKET", async () => {
    const problems: string[] = [];
    const supervisor = supervise({ PATH: "/nonexistent" }, problems);
    supervisor.ready();
    supervisor.stopping();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(problems).to.deep.equal([]);
  });

  it("report ready, watchdog and stopping to a real listener", async function () {
    const { PATH } = process.env;
    await listen();
    const problems: string[] = [];
    const supervisor = supervise({ NOTIFY_SOCKET: socket, WATCHDOG_USEC: "600000", PATH }, problems);
    supervisor.ready();
    const isSent = (word: string) => (): boolean => received.includes(word) || problems.length > 0;
    await eventually(isSent("WATCHDOG=1"));
    supervisor.stopping();
    await eventually(isSent("STOPPING=1"));
    // A machine without systemd has no systemd-notify, and the controller says so.
    if (problems.some((problem) => problem.includes("ENOENT"))) this.skip();
    expect(problems).to.deep.equal([]);
    expect(received).to.contain("READY=1");
  });

  it("that systemd-notify cannot send are reported once", async () => {
    await writeFile(join(dir.path, "systemd-notify"), "#!/bin/sh\nexit 1\n");
    await chmod(join(dir.path, "systemd-notify"), 0o755);
    const problems: string[] = [];
    const supervisor = supervise({ NOTIFY_SOCKET: socket, WATCHDOG_USEC: "60000", PATH: dir.path }, problems);
    supervisor.ready();
    await eventually(() => problems.length > 0);
    supervisor.stopping();
    expect(problems).to.have.length(1);
  });

  it("skip the watchdog of another process", async () => {
    await writeFile(join(dir.path, "systemd-notify"), `#!/bin/sh\necho "$*" >>${dir.path}/told\n`);
    await chmod(join(dir.path, "systemd-notify"), 0o755);
    const supervisor = supervise({ NOTIFY_SOCKET: socket, WATCHDOG_USEC: "3000", WATCHDOG_PID: "1", PATH: dir.path });
    supervisor.ready();
    await eventually(() => existsSync(`${dir.path}/told`));
    await new Promise((resolve) => setTimeout(resolve, 100));
    supervisor.stopping();
    expect(await readFile(`${dir.path}/told`, "utf8")).not.to.contain("WATCHDOG");
  });
});
