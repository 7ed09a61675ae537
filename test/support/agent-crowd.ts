import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { writeCredentials } from "./cluster.ts";
import type { TestCluster } from "./cluster.ts";
import { nodeCredentials, recordAt } from "./controllers.ts";
import type { TestController } from "./controllers.ts";

/** What the agents of a crowd did so far. */
export interface CrowdReport {
  /** When each TCP connection to a controller stood, by this machine's clock, in order. */
  readonly connections: readonly number[];
  /** How often each message was logged, by its text and the refusal's code. */
  readonly messages: Readonly<Record<string, number>>;
  /** How late this machine, busy as it is, was at most for what an agent had to do since the last report. */
  readonly lateMs: number;
}

/** Many agents on this machine: each with a certificate of its own, in a few processes. */
export interface AgentCrowd {
  readonly ids: readonly string[];
  readonly report: () => Promise<CrowdReport>;
  /** Kills them. */
  readonly end: () => Promise<void>;
}

/**
 * Starts that many agents, 50 a second: the whole of what `kcore agent run` runs. The first of the controllers is
 * told of their certificates, as the bastion does.
 */
export async function startCrowd(
  cluster: TestCluster,
  controllers: readonly TestController[],
  {
    count,
    processes,
    config,
  }: { readonly count: number; readonly processes: number; readonly config: Readonly<Record<string, unknown>> },
): Promise<AgentCrowd> {
  const ids = Array.from({ length: count }, () => randomUUID());
  const [first] = controllers as readonly [TestController, ...TestController[]];
  const files: string[] = [];
  for (const [index, id] of ids.entries()) {
    const credentials = nodeCredentials(cluster, id);
    await recordAt(first, credentials);
    const folder = join(cluster.dir, "agents", id);
    const tls = await writeCredentials(folder, "node", credentials);
    const endpoints = controllers.map(({ endpoint }) => endpoint);
    const place = { nodeId: id, hostname: `n${index + 1}`, listenAddr: "127.0.0.1:0", tls, stateDir: folder };
    const file = join(folder, "node-agent.yaml");
    await writeFile(file, printYaml({ ...place, controllers: endpoints, ...config }));
    files.push(file);
  }
  const share = Math.ceil(count / processes);
  const program = join(import.meta.dirname, "agent-crowd-process.ts");
  const children = Array.from({ length: processes }, (_, index) =>
    fork(program, [String(20 * processes), ...files.slice(index * share, (index + 1) * share)], {
      execArgv: ["--disable-warning=ExperimentalWarning"],
    }),
  );
  return {
    ids,
    async report() {
      const reports = await Promise.all(children.map(ask));
      const messages: Record<string, number> = {};
      for (const part of reports)
        for (const [message, times] of Object.entries(part.messages))
          messages[message] = (messages[message] ?? 0) + times;
      const connections = reports.flatMap((part) => part.connections).toSorted((a, b) => a - b);
      return { connections, messages, lateMs: Math.max(...reports.map((part) => part.lateMs)) };
    },
    async end() {
      await Promise.all(
        children.map(async (child) => {
          if (child.exitCode !== null || child.signalCode !== null) return;
          const exited = once(child, "exit");
          child.kill("SIGKILL");
          await exited;
        }),
      );
    },
  };
}

async function ask(child: ChildProcess): Promise<CrowdReport> {
  const answer = once(child, "message");
  child.send("report");
  const [report] = (await answer) as [CrowdReport];
  return report;
}
