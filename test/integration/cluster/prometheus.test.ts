import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import {
  createTestCluster,
  eventually,
  issueTo,
  startDaemon,
  writeCredentials,
  type Daemon,
  type TestCluster,
} from "#support/cluster.ts";
import { recordAt, startController, type TestController } from "#support/controllers.ts";
import { root } from "#support/pages.ts";
import { freePort } from "#support/ports.ts";

const pack = join(root, "packs/prometheus");
const rules = join(pack, "files/kcore.rules.yml");

interface Target {
  readonly health: string;
  readonly lastError: string;
  readonly labels: { readonly job: string };
}
interface Alert {
  readonly labels: { readonly alertname: string; readonly run?: string };
  readonly state: string;
}

describe("Debian's Prometheus", () => {
  let cluster: TestCluster;
  let controller: TestController;
  let agent: Daemon;
  let prometheus: ChildProcess;
  let port: number;
  let agentUrl: string;

  before(async () => {
    cluster = await createTestCluster();
    controller = await startController(cluster, { process: true });
    const nodeId = randomUUID();
    const credentials = issueTo(cluster.authority, "node", nodeId);
    await recordAt(controller, credentials);
    const stateDir = join(cluster.dir, "state");
    await mkdir(stateDir, { mode: 0o700 });
    const run = { run: "20261130-220000-0001", state: "failed", updated: "2026-11-30T22:00:00Z" };
    await writeFile(join(stateDir, "status.json"), JSON.stringify(run));
    const agentPort = await freePort();
    agentUrl = `http://127.0.0.1:${agentPort}/metrics`;
    agent = await startDaemon(["agent", "run"], join(cluster.dir, "agent.yaml"), {
      nodeId,
      listenAddr: `127.0.0.1:${agentPort}`,
      controllers: [controller.endpoint],
      tls: await writeCredentials(join(cluster.dir, "node"), "node", credentials),
      heartbeatIntervalSecs: 0.2,
      stateDir,
    });
    const { caFile, certFile, keyFile } = await writeCredentials(join(cluster.dir, "op"), "kctl", cluster.operator);
    const config = join(cluster.dir, "prometheus.yml");
    const tls = { ca_file: caFile, cert_file: certFile, key_file: keyFile, min_version: "TLS13" };
    const text = printYaml({
      global: { scrape_interval: "1s", evaluation_interval: "1s" },
      rule_files: [rules],
      scrape_configs: [
        {
          job_name: "kcore-controllers",
          scheme: "https",
          tls_config: tls,
          static_configs: [{ targets: [controller.endpoint] }],
        },
        { job_name: "kcore-agents", static_configs: [{ targets: [`127.0.0.1:${agentPort}`] }] },
      ],
    });
    await writeFile(config, text);
    port = await freePort();
    const words = ["--config.file", config, "--storage.tsdb.path", join(cluster.dir, "samples")];
    const listen = `--web.listen-address=127.0.0.1:${port}`;
    prometheus = spawn("setpriv", ["--pdeathsig", "KILL", "prometheus", ...words, listen], { stdio: "ignore" });
  });
  after(async () => {
    prometheus?.kill("SIGKILL");
    await agent?.end("SIGKILL");
    await controller?.end();
    await cluster?.remove();
  });

  it("reads the same by the textfiles of packs/node-exporter, for which each daemon is asked on its own node", async () => {
    const program = join(root, "packs/node-exporter/files/kcore-metrics");
    const collect = (url: string): readonly string[] => {
      const pair = join(controller.folder, "controller");
      execFileSync(program, [cluster.dir, agentUrl, url, pair, join(controller.folder, "ca.crt")], { stdio: "pipe" });
      return ["agent", "controller"].map((name) => readFileSync(join(cluster.dir, `kcore-${name}.prom`), "utf8"));
    };
    const files = await eventually(() => {
      const found = collect(`https://${controller.endpoint}/metrics`);
      return found[0]?.includes("kcore_agent_ready 1") === true && found;
    });
    expect(files[0]).to.contain('kcore_up{daemon="agent"} 1');
    expect(files[1])
      .to.contain('kcore_up{daemon="controller"} 1')
      .and.to.match(/^kcore_nodes\{status="ready",controller=".*"\} 1$/m);
    for (const input of files) {
      expect(input, "metrics of the process would collide with node-exporter's").not.to.match(/^(?!# |kcore_|$)/m);
      expect(execFileSync("promtool", ["check", "metrics"], { input, encoding: "utf8", stdio: "pipe" })).to.equal("");
    }
    const [, away] = collect("https://127.0.0.1:1/metrics");
    expect(away).to.contain('kcore_up{daemon="controller"} 0').and.not.to.contain("kcore_nodes");
  });

  async function ask<Answer>(path: string): Promise<Answer> {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    return ((await response.json()) as { data: Answer }).data;
  }

  it("takes the alerts, and raises each as their tests say", () => {
    const promtool = (...words: readonly string[]): string =>
      execFileSync("promtool", words, { cwd: pack, encoding: "utf8", stdio: "pipe" });
    expect(promtool("check", "rules", rules)).to.contain("SUCCESS");
    expect(promtool("test", "rules", "tests/kcore.rules.test.yml")).to.contain("SUCCESS");
  });

  it("scrapes a controller over mTLS and an agent, and raises an alert", async () => {
    const targets = await eventually(async () => {
      const { activeTargets } = await ask<{ activeTargets: Target[] }>("targets").catch(() => ({ activeTargets: [] }));
      return activeTargets.length === 2 && activeTargets.every(({ health }) => health !== "unknown") && activeTargets;
    });
    expect(targets.map(({ health, lastError, labels }) => [labels.job, health, lastError])).to.have.deep.members([
      ["kcore-agents", "up", ""],
      ["kcore-controllers", "up", ""],
    ]);
    const alert = await eventually(async () => {
      const { alerts } = await ask<{ alerts: Alert[] }>("alerts");
      return alerts.find(({ labels, state }) => labels.alertname === "KcoreNodeRunFailed" && state === "firing");
    });
    expect(alert.labels.run).to.equal("20261130-220000-0001");
    const value = await eventually(async () => {
      const { result } = await ask<{ result: { value: [number, string] }[] }>(
        "query?query=kcore_nodes{status='ready'}",
      );
      return result[0]?.value[1];
    });
    expect(value).to.equal("1");
  });
});
