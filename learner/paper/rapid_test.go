package paper_test

import _ "ephemera/env/stream/streamtest" // fixed cases in CI
