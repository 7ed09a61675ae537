import { chmodSync, existsSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { loadRoster } from "#engine/roster/load-roster.ts";
import { runSource } from "#engine/roster/run-source.ts";
import { sourceNames } from "#engine/roster/roster-paths.ts";
import { sourceOf } from "#engine/roster/sources.ts";
import { inProject } from "#support/in-project.ts";
import { problemsIn } from "#support/problems.ts";

/** A source that counts its runs, and prints a node named after the count. */
const counting = `#!/bin/sh
echo x >>calls
test ! -e down || { echo 'the database is down' >&2; exit 3; }
echo "nodes: { d$(wc -l <calls | tr -d ' '): { address: 192.0.2.1 } }"
`;

describe("executable roster sources", () => {
  const withSource = (text: string, work: (project: string) => void, name = "roster/cmdb.sh"): void =>
    inProject({ "roster/a.yaml": "nodes:\n  n1: { address: 192.0.2.9 }\n", [name]: text }, (project) => {
      chmodSync(join(project, name), 0o755);
      work(project);
    });
  const names = (project: string, sources = {}): string[] => [...loadRoster(project, { sources }).nodes.keys()];
  const age = (project: string, seconds: number): void => {
    const then = Date.now() / 1000 - seconds;
    utimesSync(join(project, "roster/cmdb.sh"), then - 1, then - 1);
    utimesSync(join(project, ".kcore/roster/cmdb.sh.yaml"), then, then);
  };

  it("are run without a shell; their output is cached for a minute, or until the source changes", () =>
    withSource(counting, (project) => {
      expect(names(project)).to.deep.equal(["n1", "d1"]);
      expect(names(project)).to.deep.equal(["n1", "d1"]);
      expect(names(project, { refresh: true })).to.deep.equal(["n1", "d2"]);
      age(project, 59);
      expect(names(project)).to.deep.equal(["n1", "d2"]);
      age(project, 61);
      expect(names(project)).to.deep.equal(["n1", "d3"]);
      const later = Date.now() / 1000 + 5;
      utimesSync(join(project, "roster/cmdb.sh"), later, later);
      expect(names(project)).to.deep.equal(["n1", "d4"]);
      expect(statSync(join(project, ".kcore/roster/cmdb.sh.yaml")).mode & 0o777).to.equal(0o600);
      const { positions, files } = loadRoster(project);
      expect(files.map(sourceOf)).to.deep.equal(["roster/a.yaml", "roster/cmdb.sh"]);
      expect(sourceOf(positions.get("n1")?.file ?? "")).to.equal("roster/a.yaml");
    }));

  it("fail with their stderr, unless a stale output is allowed", () =>
    withSource(counting, (project) => {
      names(project);
      age(project, 3 * 3600);
      writeFileSync(join(project, "down"), "");
      expect(problemsIn(() => names(project))).to.deep.equal([
        "roster/cmdb.sh gave no roster: it exits with 3 [ROSTER_SOURCE] | KCORE_ROSTER_STALE=1 takes what it said 3h ago",
      ]);
      const warnings: string[] = [];
      expect(names(project, { stale: true, warn: (text: string) => warnings.push(text) })).to.deep.equal(["n1", "d1"]);
      expect(warnings).to.deep.equal([
        "roster/cmdb.sh gave no roster: it exits with 3: taken from what it said 3h ago",
      ]);
      const calls = readFileSync(join(project, "calls"), "utf8");
      expect(names(project, { onlyKept: true })).to.deep.equal(["n1", "d1"]);
      expect(readFileSync(join(project, "calls"), "utf8")).to.equal(calls);
    }));

  it("are refused with an empty or invalid output, which does not replace the last good one", () => {
    withSource("#!/bin/sh\nexit 0\n", (project) => {
      expect(problemsIn(() => names(project))[0]).to.equal(
        "roster/cmdb.sh gave no roster: it printed nothing [ROSTER_SOURCE] | a roster without nodes is nodes: {}",
      );
      expect(names(project, { onlyKept: true })).to.deep.equal(["n1"]);
    });
    withSource("#!/bin/sh\ncat answer\n", (project) => {
      writeFileSync(join(project, "answer"), '{"nodes": {"d1": {"address": "192.0.2.1"}}}');
      names(project);
      writeFileSync(join(project, "answer"), "<html>\nsorry: [\n");
      const refresh = { refresh: true };
      expect(problemsIn(() => names(project, refresh))[0]).to.match(/^\.kcore\/roster\/cmdb\.sh\.refused:\d/);
      expect(names(project, { ...refresh, stale: true })).to.deep.equal(["n1", "d1"]);
      writeFileSync(join(project, "answer"), "nodes:\n  n1: { address: 192.0.2.1 }\n  d2: { adress: 192.0.2.2 }\n");
      const wrong = problemsIn(() => names(project, refresh));
      expect(wrong[0]).to.contain(".kcore/roster/cmdb.sh.yaml:2:3").and.to.contain("at roster/a.yaml:2");
      expect(wrong[1]).to.contain(".kcore/roster/cmdb.sh.yaml:3").and.to.contain("adress");
    });
  });

  it("are executable files with plain names other than YAML, and .url files", () =>
    withSource("#!/bin/sh\n", (project) => {
      for (const name of [".hidden", "old.sh.bak", "x~", "b.yaml", "README.md"]) {
        writeFileSync(join(project, "roster", name), "nodes: {}\n");
        chmodSync(join(project, "roster", name), 0o755);
      }
      writeFileSync(join(project, "roster/plain.txt"), "");
      writeFileSync(join(project, "roster/net.url"), "");
      expect(sourceNames(project)).to.deep.equal(["cmdb.sh", "net.url"]);
    }));

  it("are refused if other users can write to them, or if the URL is not https", () => {
    withSource("#!/bin/sh\ntouch ran\n", (project) => {
      chmodSync(join(project, "roster/cmdb.sh"), 0o777);
      const uid = process.geteuid?.() ?? 0;
      const trust = { uids: [uid], gids: [] };
      expect(problemsIn(() => loadRoster(project, { trust, sources: { stale: true } }))[0]).to.contain(
        "roster/cmdb.sh can be written by others (mode 0777) [PROJECT_NOT_TRUSTED]",
      );
      expect(existsSync(join(project, "ran"))).to.equal(false);
    });
    const work = (project: string): void =>
      void expect(problemsIn(() => names(project))[0]).to.contain(
        "roster/net.url does not hold one address [ROSTER_SOURCE]",
      );
    withSource("http://192.0.2.1/roster\n", work, "roster/net.url");
  });

  it("have a time limit, which also ends their child processes", () =>
    withSource("#!/bin/sh\nsleep 60 & echo $! >pid; wait\n", (project) => {
      const ask = (): unknown => runSource({ shown: "x", project, path: join(project, "roster/cmdb.sh"), limit: 300 });
      expect(problemsIn(ask)).to.deep.equal(["x gave no roster: it took longer than 0.3 s [ROSTER_SOURCE]"]);
      const pid = readFileSync(join(project, "pid"), "utf8").trim();
      // A killed process may live for a moment longer.
      const isAlive = (): boolean => {
        const stat = `/proc/${pid}/stat`;
        return existsSync(stat) && readFileSync(stat, "utf8").split(" ")[2] !== "Z";
      };
      for (let tries = 0; tries < 500 && isAlive(); tries++)
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
      expect(isAlive()).to.equal(false);
    }));

  it("are refused with the reason why they cannot be run", () =>
    withSource("#!/no/such/shell\n", (project) => {
      expect(problemsIn(() => names(project))[0]).to.contain(
        "it cannot be run (ENOENT): has it a first line such as #!/bin/sh?",
      );
    }));
});
