import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { checkProject } from "#engine/orchestrate/check-project.ts";
import { actionNames, findAction } from "#actions/registry.ts";
import { registry } from "#engine/modules/registry.ts";
import { openOwnModules } from "#engine/own-modules/open-modules.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { addPacks } from "#support/packs.ts";
import { root } from "#support/pages.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const page = read("docs/monitoring.md");
const rules = read("packs/prometheus/files/kcore.rules.yml");
const dashboard = read("packs/prometheus/files/kcore-dashboard.json");
const source = ["src/controller/metrics.ts", "src/cli/runs/run-gauges.ts", "packs/node-exporter/files/kcore-metrics"]
  .map(read)
  .join("\n");
const metrics = new Set([
  ...(source.match(/kcore_[a-z_]+(?=[" ])/g) ?? []),
  ...Array.from(read("src/agent/agent-metrics.ts").matchAll(/gauge\(\s*"(\w+)"/g), ([, name]) => `kcore_agent_${name}`),
]);
/** The metrics that a text names; a histogram's series end with `_count`. */
const namedIn = (text: string): readonly string[] =>
  [...new Set(text.match(/\bkcore_[a-z_]+/g) ?? [])].map((name) => name.replace(/_count$/, "")).toSorted();

describe("docs/monitoring.md and the alerts", () => {
  it("name only metrics that there are, and the page names all", () => {
    for (const text of [rules, dashboard]) expect(namedIn(text).filter((name) => !metrics.has(name))).to.deep.equal([]);
    const told = Array.from(page.matchAll(/^\| `(kcore_\w+)`/gm), ([, name = ""]) => name);
    expect(told.toSorted()).to.deep.equal([...metrics].toSorted());
  });

  it("list the same alerts with their severities, each tested both ways", () => {
    const { groups } = parse(rules) as {
      groups: { rules: { alert: string; labels: { severity: string } }[] }[];
    };
    const alerts = groups.flatMap(({ rules: found }) => found.map(({ alert, labels }) => [alert, labels.severity]));
    const told = Array.from(page.matchAll(/^\| `(Kcore\w+)` *\| (\w+)/gm), ([, alert, severity]) => [alert, severity]);
    expect(told).to.deep.equal(alerts);
    const { tests } = parse(read("packs/prometheus/tests/kcore.rules.test.yml")) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
    };
    const tested = (raised: boolean, index: number) =>
      tests[index]?.alert_rule_test.filter(({ exp_alerts: found }) => found.length > 0 === raised);
    for (const [raised, index] of [
      [true, 0],
      [false, 1],
    ] as const)
      expect(tested(raised, index)?.map(({ alertname }) => alertname)).to.deep.equal(alerts.map(([alert]) => alert));
  });

  it("come in packs that are in order", async () => {
    const project = addPacks(["node-exporter", "prometheus"]);
    const places = { project: project.path, shipped: shippedRoot() };
    const modules = openOwnModules(places).beside(registry);
    try {
      expect((await checkProject({ ...places, actions: findAction, actionNames, modules })).problems).to.deep.equal([]);
    } finally {
      project.remove();
    }
  });
});
