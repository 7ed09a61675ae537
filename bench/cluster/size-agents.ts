// A process of simulated agents: the real agent and its real client over TLS; only the machine below them is made up.
import { X509Certificate } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "#agent/agent.ts";
import { AgentConfig } from "#agent/agent-config.ts";
import { controllerRank } from "#agent/controller-order.ts";
import { openControllers, type Controllers } from "#api/ask.ts";
import type { Credentials } from "#api/client.ts";
import { identityOf } from "#pki/identity.ts";

/** From the bench: agents to start, `perSecond` of them at a time; or a question how the agents are spread now. */
export type ToAgents =
  | {
      readonly add: readonly (Credentials & { readonly id: string; readonly name: string })[];
      readonly endpoints: readonly string[];
      readonly perSecond: number;
      readonly isSpread: boolean;
    }
  | { readonly tell: number };
/** To the bench: the registered agents by the controller that they use, failed requests so far, and the use of this process. */
export interface FromAgents {
  readonly tell: number;
  readonly registered: number;
  readonly by: Readonly<Record<string, number>>;
  readonly failed: number;
  readonly cpuMs: number;
  readonly residentMb: number;
}

const agents: { readonly controllers: Controllers; isRegistered: boolean }[] = [];
let failed = 0;
const usage = { load: 0.5, memoryUsed: 2 ** 30, diskUsed: 2 ** 33, diskSize: 2 ** 36, storeFree: 2 ** 35 };
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
const { signal } = new AbortController();

function start(
  { id, name, ...credentials }: Credentials & { readonly id: string; readonly name: string },
  endpoints: readonly string[],
  isSpread: boolean,
): void {
  const certificate = new X509Certificate(credentials.cert);
  const identity = identityOf(certificate, "client");
  const present = { ...credentials, identity, notAfter: certificate.validToDate, version: "1" };
  const config = AgentConfig.parse({
    learnControllers: isSpread,
    roles: ["worker"],
    tls: { caFile: "", certFile: "", keyFile: "" },
  });
  const rank = controllerRank(config, id);
  const controllers = openControllers({
    endpoints,
    rank,
    credentials: () => present,
    clock: Date.now,
    isPatient: false,
    onFailed: () => failed++,
  });
  const one = { controllers, isRegistered: false };
  agents.push(one);
  const facts = { nodeId: id, hostname: name, cpu: 8, memory: 2 ** 34, labels: { tier: "web" } };
  const agent = new Agent({
    machine: {
      sleep: (ms, stop) => sleep(ms, undefined, { signal: stop }),
      gatherFacts: () => Promise.resolve({ ...facts, dc: "DC1", roles: ["worker"], version: "1" } as never),
      readUsage: () => Promise.resolve(usage),
      addressTowards: () => Promise.resolve("192.0.2.1"),
      writeStatus: ({ registered }) => {
        one.isRegistered = registered;
        return Promise.resolve();
      },
    },
    config,
    controllers,
    credentials: { present: () => present, reloadIfChanged: () => Promise.resolve(false) } as never,
    renewer: { renewIfDue: () => Promise.resolve(false), problem: () => undefined },
    signal,
    log: quiet as never,
    clock: Date.now,
    random: Math.random,
    version: "1",
    nodeId: id,
    statusFile: "",
    onCredentials: () => undefined,
    revocations: { version: () => undefined, add: () => Promise.resolve(false) } as never,
    onRevoked: () => undefined,
    onConcerned: () => undefined,
  });
  void agent.live();
}

function tell(number: number): FromAgents {
  const by: Record<string, number> = {};
  for (const { controllers } of agents) {
    const at = controllers.current() ?? "none";
    by[at] = (by[at] ?? 0) + 1;
  }
  const { user, system } = process.cpuUsage();
  const registered = agents.filter(({ isRegistered }) => isRegistered).length;
  return {
    tell: number,
    registered,
    by,
    failed,
    cpuMs: (user + system) / 1000,
    residentMb: process.memoryUsage.rss() / 2 ** 20,
  };
}

process.on("message", (message: ToAgents) => {
  if ("tell" in message) return void process.send?.(tell(message.tell));
  void (async () => {
    for (const [index, one] of message.add.entries()) {
      start(one, message.endpoints, message.isSpread);
      if (index % 10 === 9) await sleep(10_000 / message.perSecond);
    }
  })();
});
process.on("disconnect", () => process.exit());
