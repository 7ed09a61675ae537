import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { localFile } from "#actions/local-file.ts";
import { secret } from "#engine/step/secret.ts";
import type { Trust } from "#engine/project/project.ts";
import { actionContext } from "#support/action-context.ts";
import { rejectionOf } from "#support/rejection.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("local.file", () => {
  const project = folderOfEachTest("local");
  const outside = folderOfEachTest("outside");

  const act = async (kind: "run" | "plan", args: Record<string, unknown>, more: { trust?: Trust } = {}) => {
    const context = actionContext({ project: project(), dryRun: kind === "plan", ...more });
    const result = await localFile[kind](localFile.args.parse(args), context);
    return { result, notes: context.notes };
  };
  const refusalOf = async (...given: Parameters<typeof act>): Promise<readonly string[]> =>
    (await rejectionOf(act(...given))).problems.map(({ code }) => code);
  const file = (): Promise<string> => readFile(project("kept/admin.conf"), "utf8");
  const admin = { path: "kept/admin.conf", content: secret("a key\n") };

  it("creates the file with its folders, 0600 by default, and notes no content", async () => {
    const { result, notes } = await act("run", admin);
    expect(result).to.deep.equal({ changed: true, outputs: {} });
    expect(notes).to.deep.equal(["wrote kept/admin.conf"]);
    expect(await file()).to.equal("a key\n");
    expect((await stat(project(admin.path))).mode & 0o777).to.equal(0o600);
  });

  it("changes nothing if content and mode are as wanted", async () => {
    await act("run", admin);
    for (const kind of ["run", "plan"] as const)
      expect((await act(kind, admin)).result).to.deep.equal({ changed: false, outputs: {} });
  });

  it("corrects content and mode; a dry run only notes what it would write", async () => {
    await act("run", admin);
    await writeFile(project(admin.path), "other");
    expect(await act("plan", admin)).to.deep.include({ notes: ["would write kept/admin.conf"] });
    expect(await file()).to.equal("other");
    await act("run", { ...admin, mode: "0640" });
    expect(await file()).to.equal("a key\n");
    expect((await stat(project(admin.path))).mode & 0o777).to.equal(0o640);
    expect((await act("run", admin)).result, "the mode alone").to.deep.include({ changed: true });
  });

  it("replaces a symbolic link, and leaves the link's target as it was", async () => {
    await writeFile(project("elsewhere"), "theirs");
    await symlink("elsewhere", project("mine"));
    await act("run", { path: "mine", content: "mine" });
    expect(await readFile(project("elsewhere"), "utf8")).to.equal("theirs");
    expect(await readFile(project("mine"), "utf8")).to.equal("mine");
  });

  it("refuses a kubeconfig that names programs or files of the bastion, in any spelling or encoding of YAML", async () => {
    const user = (keys: string) => `users: [{ name: a, user: { ${keys} } }]\n`;
    for (const content of [
      user("exec: { command: /bin/sh }"),
      secret(user("exec: { command: /bin/sh }")),
      user('"\\x65xec": { command: /bin/sh }'),
      user("Exec: { command: /bin/sh }"),
      user("token: a, auth-provider: { name: gcp, config: { cmd-path: /bin/sh } }"),
      user("tokenFile: /root/.ssh/id_ed25519"),
      `x: &u { exec: { command: /bin/sh } }\nusers: [{ name: a, user: { <<: *u } }]\n`,
      `users: []\n${user("exec: { command: /bin/sh }")}`,
      `kind: Config\n---\n${user("exec: { command: /bin/sh }")}`,
      JSON.stringify({ users: [{ name: "a", user: { exec: { command: "/bin/sh" } } }] }),
      `${user("exec: { command: /bin/sh }")}${"# padded\n".repeat(130_000)}`,
      `${user("exec: { command: /bin/sh }")}\tbroken: [\n`,
    ])
      expect(await refusalOf("run", { path: "kubeconfig", content }), String(content).slice(0, 60)).to.deep.equal([
        "KUBECONFIG_INVALID",
      ]);
    for (const content of [user("token: a"), "exec: nothing but a word\n", "users of exec: none", "", "\0"])
      expect((await act("run", { path: "kept", content })).result, content).to.deep.include({ changed: true });
  });

  it("refuses a path that is a folder or leads through a file", async () => {
    await mkdir(project("kept"));
    await writeFile(project("file"), "");
    for (const path of ["kept", ".", "file/x", "file/x/y"])
      expect(await refusalOf("run", { path, content: "" }), path).to.deep.equal(["FILE_IN_THE_WAY"]);
  });

  it("follows no link out of the project, and writes into no folder that other users can write", async () => {
    await symlink(outside(), project("out"));
    for (const path of ["out/x", "out/deeper/x"])
      expect(await refusalOf("run", { path, content: "" }), path).to.deep.equal(["FILE_PARENT_UNSAFE"]);
    expect(await readdir(outside())).to.deep.equal([]);
    await mkdir(project("own"));
    await symlink("own", project("link"));
    await act("run", { path: "link/x", content: "inside" });
    expect(await readFile(project("own/x"), "utf8")).to.equal("inside");
    const uid = process.getuid?.() ?? 0;
    const trust = { uids: [uid, 0], gids: [process.getgid?.() ?? 0, 0] };
    await chmod(project("own"), 0o777);
    for (const kind of ["run", "plan"] as const)
      expect(await refusalOf(kind, { path: "own/y", content: "" }, { trust })).to.deep.equal(["PROJECT_NOT_TRUSTED"]);
  });

  it("refuses a path outside the project", () => {
    for (const path of ["/etc/passwd", "../x", "a/../../x"])
      expect(localFile.args.safeParse({ path, content: "" }).success, path).to.equal(false);
  });
});
