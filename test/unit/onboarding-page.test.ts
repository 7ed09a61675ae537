import { spawnSync } from "node:child_process";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { shippedRoot } from "#engine/project/shipped.ts";
import { shellsOf } from "#support/shells.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const script = join(shippedRoot(), "templates/onboarding.sh.hbs");

for (const shell of shellsOf(import.meta.filename, ["dash", "bash --posix", "busybox sh", "mksh"]))
  describe(`the onboarding page in ${shell}`, () => {
    const at = folderOfEachTest("onboarding");
    const call = (words: readonly string[], input = ""): string => {
      const [program = "", ...options] = shell.split(" ");
      const { stdout, status } = spawnSync(program, [...options, script, ...words], { input, encoding: "utf8" });
      expect(status).to.equal(0);
      return stdout;
    };
    const copy = (status: string, log = ""): void => {
      writeFileSync(at("status.json"), status, { mode: 0o600 });
      writeFileSync(at("onboarding.log"), log, { mode: 0o600 });
      call(["copy", at("."), at("public")]);
    };
    /** The answer to a request: its status line and headers, and its body. */
    const ask = (line: string): readonly [head: string, body: string] => {
      const answer = call(["answer", at("public")], `${line}\r\nHost: n1\r\n\r\n`);
      const end = answer.indexOf("\r\n\r\n");
      return [answer.slice(0, end), answer.slice(end + 4)];
    };
    const run = { node: "n1", run: "r1", state: "running", step: 'a "quoted",\\"agent\\":{ step' };

    it("gives the run's status as JSON without the agent's part, as a runner or an agent wrote it", () => {
      const agent = { state: "running", controller: "192.0.2.1:9090" };
      for (const text of [JSON.stringify({ ...run, agent }), JSON.stringify({ ...run, agent }, undefined, 2)]) {
        copy(`${text}\n`);
        const [head, body] = ask("GET /status.json HTTP/1.1");
        expect(head)
          .to.match(/^HTTP\/1\.1 200 OK\r\n/)
          .and.contain("application/json")
          .and.contain("no-store");
        expect(JSON.parse(body)).to.deep.equal(run);
      }
      for (const text of [JSON.stringify({ agent }), "", "{}"]) {
        copy(text);
        expect(ask("GET /status.json HTTP/1.0")[1]).to.equal("{}\n");
      }
      expect(readdirSync(at("public"))).to.deep.equal(["onboarding.log", "status.json"]);
      expect(statSync(at("public/status.json")).mode & 0o777).to.equal(0o644);
    });

    it("gives the last 64 KiB of the log, without characters that drive a terminal", () => {
      copy("{}", `${"old\n".repeat(20_000)}2026-01-01 r1 running a\u001b[2Jstep\r\n`);
      const [head, body] = ask("GET /onboarding.log HTTP/1.1");
      expect(head).to.contain("text/plain");
      expect(body.length).to.be.within(65_000, 65_536);
      expect(body).to.match(/old\n2026-01-01 r1 running a\[2Jstep\n$/);
    });

    it("shows both on a page, in which a title is no markup", () => {
      copy(JSON.stringify({ ...run, step: "<script>&" }), "r1 running <img src=x>\n");
      const [head, body] = ask("GET / HTTP/1.1");
      expect(head).to.contain("text/html").and.contain("default-src 'none'");
      expect(body).to.contain('"step":"&lt;script&gt;&amp;"').and.contain("r1 running &lt;img src=x&gt;");
    });

    it("answers nothing else", () => {
      copy("{}");
      for (const path of ["/x", "/../../etc/passwd", "/status.json?x", "//", "/ /"])
        expect(ask(`GET ${path} HTTP/1.1`)[0], path).to.match(/^HTTP\/1\.1 404 /);
      for (const line of ["POST / HTTP/1.1", "HEAD / HTTP/1.1", "", "GET", "\u0000", "x".repeat(100_000)])
        expect(ask(line)[0], line.slice(0, 20)).to.match(/^HTTP\/1\.1 405 /);
      expect(call(["answer", at("public")])).to.contain(" 405 ");
    });
  });
