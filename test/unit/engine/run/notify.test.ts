import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { readNotices, type Notice } from "#engine/orchestrate/notices.ts";
import { Notifier, type NoticeContent } from "#engine/run/notify.ts";
import { problemsIn } from "#support/problems.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const finished = (outcome: "done" | "failed" | "unreachable" | "interrupted"): RunEventBody => ({
  type: "run.finished",
  outcome,
  exitCode: 1,
  problem: { code: "STEP_FAILED", message: "a failed" },
});
const changed = { type: "action.finished", stage: "s", action: "a", outcome: "changed" } as const;
const position = { file: "states/s.yaml", line: 1, column: 1 };
const net = { node: "n1", stage: "s", step: "net", title: "net", module: "network.managed", position, duration: 1 };
const step = (outcome: "changed" | "interrupted"): RunEventBody => ({ type: "step.finished", ...net, outcome });
const problem = { code: "HOST_UNREACHABLE", message: "silent" } as const;
const gone = { type: "node.finished", node: "n1", outcome: "unreachable", problem } as const;
const question = { id: "q", kind: "confirm", text: "Go on?", secret: false } as const;
const asked = { type: "question.asked", question } as const;

describe("notices of a run", () => {
  const at = folderOfEachTest("notify");

  const run = { run: "r1", command: "kcore state apply web", who: "op@b" };
  const undelivered = async (notices: readonly Notice[], events: readonly RunEventBody[]) => {
    const notifier = new Notifier(notices, { ...run, project: at() });
    return (await Promise.all(events.map(async (event) => notifier.handle(event)))).flatMap((texts) => texts ?? []);
  };

  it("are sent at a failure, a change and a question", async () => {
    const sent: NoticeContent[] = [];
    const all: Notice = { on: ["failure", "change", "question"], mail: "a@b.c" };
    const deliver = (_: Notice, one: NoticeContent) => Promise.resolve(void sent.push(one));
    const noticesOf = async (...events: readonly RunEventBody[]) => {
      sent.length = 0;
      const notifier = new Notifier([all], { ...run, project: at() }, deliver);
      for (const event of events) await notifier.handle(event);
      return sent.map(({ event }) => event);
    };
    expect([await noticesOf(finished("done")), await noticesOf(finished("interrupted"))]).to.deep.equal([[], []]);
    expect(await noticesOf(changed, finished("done"))).to.deep.equal(["change"]);
    const reverted = [step("changed"), step("interrupted"), finished("failed")];
    expect(await noticesOf(...reverted), "a reverted change").to.deep.equal(["failure"]);
    expect(await noticesOf(changed, ...reverted)).to.deep.equal(["failure", "change"]);
    expect(sent.map((one) => one.changed)).to.deep.equal([1, 1]);
    expect(await noticesOf(asked, changed, gone, finished("unreachable"))).to.deep.equal([
      "question",
      "failure",
      "change",
    ]);
    expect(sent[0]).to.deep.include({ ...run, question: "Go on?" });
    expect(sent[1]).to.deep.include({
      outcome: "unreachable",
      changed: 1,
      nodes: { n1: "silent" },
      problem: "a failed [STEP_FAILED]",
    });
  });

  it("are sent to a command's stdin, by POST to a webhook, and to sendmail", async () => {
    const posted: string[] = [];
    const server = createServer((request, response) => {
      void text(request).then((body) => {
        posted.push(`${request.method} ${request.url} ${body}`);
        response.end();
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const sendmail = at("sendmail");
    writeFileSync(sendmail, '#!/bin/sh\necho "$*" >mail; cat >>mail\n');
    chmodSync(sendmail, 0o755);
    const before = process.env["PATH"];
    process.env["PATH"] = `${at()}:${before}`;
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
      const on = ["failure"] as const;
      const ways = [{ command: ["sh", "-c", "cat >delivered"] }, { webhook: url }, { mail: "ops@example.org" }];
      expect(
        await undelivered(
          ways.map((way) => ({ on: [...on], ...way })),
          [finished("failed")],
        ),
      ).to.deep.equal([]);
    } finally {
      process.env["PATH"] = before;
      server.close();
    }
    const json = readFileSync(at("delivered"), "utf8");
    expect(JSON.parse(json)).to.deep.include({ event: "failure", run: "r1", outcome: "failed" });
    expect(posted).to.deep.equal([`POST /hook ${json}`]);
    expect(readFileSync(at("mail"), "utf8"))
      .to.contain("-i -- ops@example.org\nTo: ops@example.org\nSubject: kcore: failure in kcore state apply web on ")
      .and.contain("\n\nrun: r1\n");
  });

  it("that cannot be delivered are reported, without the path of a webhook", async () => {
    const server = createServer((_, response) => response.writeHead(500).end()).listen(0, "127.0.0.1");
    await once(server, "listening");
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const ways = [{ command: ["false"] }, { command: ["no-such-program"] }, { webhook: `http://${host}/secret` }];
      const failures = await undelivered(
        ways.map((way) => ({ on: ["failure"], ...way })),
        [finished("failed")],
      );
      expect(failures).to.deep.equal([
        "false was not told: exit code 1",
        "no-such-program was not told: exit code 127 (not found)",
        `${host} was not told: it answered 500`,
      ]);
    } finally {
      server.close();
    }
  });

  it("are read from notify.yaml, and invalid ones are refused", () => {
    const write = (content: string) => writeFileSync(at("notify.yaml"), content);
    expect(readNotices(at(), undefined)).to.deep.equal([]);
    write("- { on: [failure], command: [ci/notify.sh] }\n");
    expect(readNotices(at(), undefined)).to.deep.equal([{ on: ["failure"], command: ["ci/notify.sh"] }]);
    for (const content of [
      "- { on: [failure] }\n",
      "- { on: [], mail: a@b.c }\n",
      "- { on: [success], mail: a@b.c }\n",
      "- { on: [failure], mail: a@b.c, command: [x] }\n",
      "- { on: [failure], mail: -oQ/tmp }\n",
      "- { on: [failure], webhook: file:///etc/passwd }\n",
      "mail: a@b.c\n",
    ]) {
      write(content);
      expect(problemsIn(() => readNotices(at(), undefined))[0], content).to.match(/^notify\.yaml:1:\d+/);
    }
  });
});
