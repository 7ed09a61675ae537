// kcore uses only Handlebars' parser; the types of the package do not declare these two files.
declare module "handlebars/dist/cjs/handlebars/compiler/base.js" {
  export function parse(text: string): unknown;
}

declare module "handlebars/dist/cjs/handlebars/compiler/parser.js" {
  const parser: {
    readonly symbols_: { readonly SEP: number; readonly NUMBER: number; readonly ID: number };
    /** Returns the number of the next token and sets `yytext` to its text. */
    readonly lexer: { lex: () => number; readonly yytext: string };
  };
  export default parser;
}
