// The unit behind precompiled headers (HotpackBuild.cmake).
