import { readFile, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { localCommand } from "#actions/local-command.ts";
import { isAlive, markProcess } from "#engine/run/process-mark.ts";
import { secret } from "#engine/step/secret.ts";
import { KcoreError } from "#errors/problem.ts";
import { actionContext } from "#support/action-context.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("local.command", () => {
  const project = folderOfEachTest("local");

  const run = (args: Record<string, unknown>, fields = {}) =>
    localCommand.run(localCommand.args.parse(args), actionContext({ project: project(), ...fields }));
  const plan = (args: Record<string, unknown>) =>
    localCommand.plan(localCommand.args.parse(args), actionContext({ project: project(), dryRun: true }));

  it("outputs the exit code, stdout without its last newline, and stderr", async () => {
    const { changed, outputs } = await run({ command: "echo out; echo err >&2" });
    expect([changed, outputs]).to.deep.equal([true, { rc: 0, stdout: "out", stderr: "err\n" }]);
  });

  it("reports output line by line while the command runs, each line with its stream", async () => {
    const reported: [string, string][] = [];
    const output = (stream: string, text: string): void => void reported.push([stream, text]);
    await run({ command: "seq 1 10; echo ä no end | tr -d '\\n'; echo trouble >&2" }, { output });
    const printed = (wanted: string): string =>
      reported.flatMap(([stream, text]) => (stream === wanted ? [text] : [])).join("");
    expect([printed("out"), printed("err")]).to.deep.equal(["1\n2\n3\n4\n5\n6\n7\n8\n9\n10\nä no end", "trouble\n"]);
    expect(reported.slice(0, -1).filter(([, text]) => !text.endsWith("\n") && text !== "ä no end")).to.deep.equal([]);
  });

  it("runs in the project's folder, and refuses a cwd outside of the project", async () => {
    expect((await run({ command: "pwd -P" })).outputs["stdout"]).to.equal(project());
    expect(localCommand.args.safeParse({ command: "id", cwd: "../x" }).success).to.equal(false);
    expect(localCommand.args.safeParse({ command: "id", cwd: "/etc" }).success).to.equal(false);
  });

  it("runs nothing if the file of `creates` exists or `unless` succeeds", async () => {
    await writeFile(project("done"), "");
    const args = { command: "exit 1", creates: "done" };
    expect((await run(args)).changed).to.equal(false);
    expect((await run({ command: "exit 1", unless: "test -e done" })).changed).to.equal(false);
    expect(await plan(args)).to.have.property("changed", false);
  });

  it("runs in a dry run only with readOnly", async () => {
    expect(await plan({ command: "touch made" })).to.equal("unknown");
    expect(await run({ command: "test ! -e made" })).to.have.property("changed", true);
    expect(await plan({ command: "echo 1", readOnly: true })).to.deep.equal({
      changed: false,
      outputs: { rc: 0, stdout: "1", stderr: "" },
    });
  });

  it("fails with the exit code and stderr of a command that failed", async () => {
    const error = (await run({ command: "echo no such tag >&2; exit 7" }).catch(
      (thrown: unknown) => thrown,
    )) as KcoreError;
    expect(error).to.be.instanceOf(KcoreError);
    expect(error.problems[0]).to.include({ code: "LOCAL_COMMAND_FAILED", detail: "no such tag" });
    expect(error.message).to.contain("ended with exit code 7");
  });

  it("S-7: passes a secret by stdin, not in argv", async () => {
    const { outputs } = await run({ command: "cat >file; tr '\\0' ' ' </proc/$$/cmdline", stdin: secret("hunter2") });
    expect(outputs["stdout"]).to.not.contain("hunter2");
    expect((await run({ command: "cat file" })).outputs["stdout"]).to.equal("hunter2");
  });

  it("kills the command and its children when the run is aborted", async () => {
    const abort = new AbortController();
    const output = (): void => abort.abort();
    const ended = await run(
      { command: "sleep 60 & echo $! >child; cat child; wait" },
      { signal: abort.signal, output },
    ).catch((error: Error) => error);
    expect(ended).to.have.property("name", "AbortError");
    const child = Number(await readFile(project("child"), "utf8"));
    expect(isAlive(markProcess(child))).to.equal(false);
  });

  it("F-10: fails a command that prints more than 2 MiB", async () => {
    const error = (await run({ command: "yes" }).catch((thrown: unknown) => thrown)) as KcoreError;
    expect(error.message).to.contain("printed more than 2 MiB");
  });
});
