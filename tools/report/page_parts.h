// The report's template, style and script (tools/report/page), put into the program when it is built.
#pragma once

namespace hotpack {

extern const char kPageHtml[];  // with @NAME@ where page.cc puts something
extern const char kPageCss[];
extern const char kPageScript[];

}  // namespace hotpack
