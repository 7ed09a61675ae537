import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { hangLimit } from "./limit.ts";

const program = "/usr/bin/chromium";

/** A page in a real browser, with its requests and complaints: a report must cause none. */
export interface OpenPage {
  readonly page: Page;
  /** Addresses that the page requested, besides its own. */
  readonly requests: readonly string[];
  /** Errors, refused styles and refused scripts. */
  readonly complaints: readonly string[];
}

/** Starts Debian's Chromium without a window. */
export async function startBrowser(): Promise<Browser> {
  if (!existsSync(program)) throw new Error(`${program} is missing: install the package “chromium” to run this test`);
  // Chromium's sandbox does not work for root.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: program, args });
}

/** Collects a page's complaints, and its requests to other addresses than `own`, from now on. */
export function watchPage(page: Page, own = ""): Pick<OpenPage, "requests" | "complaints"> {
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => {
    if (request.url() !== own) requests.push(request.url());
  });
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return { requests, complaints };
}

/** Opens a file from disk, as a reader of a mailed report does. */
export async function openFile(browser: Browser, file: string, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const watched = watchPage(page, `file://${file}`);
  await page.goto(`file://${file}`);
  return { page, ...watched };
}

/** The value of a JavaScript expression in the page. */
export async function ask<Value = unknown>(page: Page, expression: string): Promise<Value> {
  return (await page.evaluate(expression)) as Value;
}

/** Waits until an expression is true. (Playwright's own function evaluates text in the page, which the page's policy refuses.) */
export async function until(page: Page, expression: string): Promise<void> {
  const end = Date.now() + hangLimit;
  while (!(await ask<boolean>(page, `Boolean(${expression})`))) {
    if (Date.now() > end) throw new Error(`never true in the page: ${expression}`);
    await page.waitForTimeout(20);
  }
}
